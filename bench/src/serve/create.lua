-- Creates objects under names that nobody has used. Arguments: path, token, label.
local threads = 0

function setup(thread)
  thread:set("number", threads)
  threads = threads + 1
end

function init(arguments)
  path, token, label = arguments[1], arguments[2], arguments[3]
  count, failures = 0, 0
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

function response(status)
  if status ~= 201 then failures = failures + 1 end
end

function done(summary, latency)
  io.write(string.format('{"requests":%d,"micros":%d,"bad":%d,"p50":%d,"p99":%d}\n',
    summary.requests, summary.duration,
    summary.errors.status + summary.errors.connect + summary.errors.read + summary.errors.write + summary.errors.timeout,
    latency:percentile(50), latency:percentile(99)))
end
