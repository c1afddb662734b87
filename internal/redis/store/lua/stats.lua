-- Counts: scheduled, ready, in flight, dead, head due in ms or -1. Returns MORE while ended leases
-- are to be given back first.
if expire() then
  return 'MORE'
end
local ready = redis.call('ZCOUNT', DUE, '-inf', NOW)
local waiting = redis.call('ZCARD', DUE)
local moved = redis.call('LLEN', READY)
local dead = redis.call('ZCARD', DEAD)
local held = redis.call('ZCARD', LEASES)
local elsewhere = waiting + moved + dead
-- A claim without a script that lost leaves an entry in LEASES of a message that is elsewhere, or
-- gone.
local in_flight = math.max(math.min(held, redis.call('HLEN', MSG) - elsewhere), 0)
local head = redis.call('ZRANGE', DUE, 0, 0, 'WITHSCORES')[2]
local first = redis.call('LINDEX', READY, 0)
if first then
  local v = redis.call('HGET', HELD, first)
  head = math.min(v and due_in(v) or NOW, tonumber(head or math.huge))
end
return {
  waiting - ready,
  ready + moved,
  in_flight,
  dead,
  head and int(tonumber(head)) or '-1',
}
