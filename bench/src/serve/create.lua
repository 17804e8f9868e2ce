-- Creates objects under names that nobody has used, each with `size` as its number. Arguments: path,
-- token, label, how many each thread makes at most.
local threads = {}

function setup(thread)
  thread:set("number", #threads)
  table.insert(threads, thread)
end

function init(arguments)
  path, token, label, most = arguments[1], arguments[2], arguments[3], tonumber(arguments[4])
  count, answers, failure = 0, 0, ""
  headers = { ["Content-Type"] = "application/json", ["Authorization"] = "Bearer " .. token }
end

function request()
  count = count + 1
  local name = label .. "-" .. number .. "-" .. count
  local body = '{"apiVersion":"test.concert.dev/v1","kind":"Widget","metadata":{"name":"' .. name ..
    '","namespace":"default","labels":{"app":"bench"}},"spec":{"size":' .. count .. ',"colour":"red",' ..
    '"parts":[{"name":"a","count":1},{"name":"b","count":2}],"note":"' .. string.rep("x", 600) .. '"}}'
  return wrk.format("POST", path, headers, body)
end

function response(status, _, body)
  if status ~= 201 then failure = status .. " " .. body:sub(1, 200):gsub('[%c"\\]', " ") end
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
