-- Creates objects under names that nobody has used, each with `size` as its number; or, with a fifth
-- argument, writes the status of so many objects in turn, each thread of its own half of them. Arguments:
-- path, token, label, how many writes each thread makes at most, how many objects there are.
local threads = {}

function setup(thread)
  thread:set("number", #threads)
  table.insert(threads, thread)
end

function init(arguments)
  path, token, label, most = arguments[1], arguments[2], arguments[3], tonumber(arguments[4])
  pool = tonumber(arguments[5])
  kind = pool and "application/merge-patch+json" or "application/json"
  count, answers, failure = 0, 0, ""
  headers = { ["Content-Type"] = kind, ["Authorization"] = "Bearer " .. token }
end

function request()
  count = count + 1
  if pool then return update() end
  local name = label .. "-" .. number .. "-" .. count
  local body = '{"apiVersion":"test.concert.dev/v1","kind":"Widget","metadata":{"name":"' .. name ..
    '","namespace":"default","labels":{"app":"bench"}},"spec":{"size":' .. count .. ',"colour":"red",' ..
    '"parts":[{"name":"a","count":1},{"name":"b","count":2}],"note":"' .. string.rep("x", 600) .. '"}}'
  return wrk.format("POST", path, headers, body)
end

-- Every write is another one: a status that is there already is not written.
function update()
  local name = label .. "-" .. (count * 2 + number) % pool
  local body = '{"status":{"seen":' .. count .. ',"conditions":[{"type":"Ready","status":"True",' ..
    '"reason":"Available","message":"as declared"}]}}'
  return wrk.format("PATCH", path .. "/" .. name .. "/status", headers, body)
end

function response(status, _, body)
  if status ~= (pool and 200 or 201) then failure = status .. " " .. body:sub(1, 200):gsub('[%c"\\]', " ") end
  answers = answers + 1
  if answers >= most then wrk.thread:stop() end
end

function done(summary, latency)
  local failure = ""
  for _, thread in ipairs(threads) do failure = failure .. thread:get("failure") end
  local errors = summary.errors
  io.write(string.format(
    '{"requests":%d,"micros":%d,"refused":%d,"broken":%d,"failure":"%s","p50":%d,"p99":%d}\n',
    summary.requests, summary.duration, errors.status,
    errors.connect + errors.read + errors.write + errors.timeout, failure,
    latency:percentile(50), latency:percentile(99)))
end
