-- Counts: scheduled, ready, in flight, dead, head due in ms or -1. Returns MORE while ended leases are to be given back first.
if expire() then
  return 'MORE'
end
local ready = redis.call('ZCOUNT', DUE, '-inf', NOW)
local head = redis.call('ZRANGE', DUE, 0, 0, 'WITHSCORES')[2]
local first = redis.call('LINDEX', READY, 0)
if first then
  local v = redis.call('HGET', HELD, first)
  head = math.min(v and due_in(v) or NOW, tonumber(head or math.huge))
end
return {
  redis.call('ZCARD', DUE) - ready,
  ready + redis.call('LLEN', READY),
  redis.call('ZCARD', LEASES),
  redis.call('ZCARD', DEAD),
  head and int(tonumber(head)) or '-1',
}
