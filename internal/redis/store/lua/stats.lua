-- Counts: scheduled, ready, in flight, dead, no quarantined ones, head due in ms or -1, for how
-- many ms it has been due, how many are due up to each of some times from now, in ms, and after
-- the one before, the end of the pause in ms, 0 for one without an end, -1 without a pause, and the
-- activity as pairs of a field and a number.
-- Returns MORE while ended leases are to be given back first.
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
head = head and tonumber(head)
local out = {
  waiting - ready,
  ready + moved,
  in_flight,
  dead,
  0,
  head and int(head) or '-1',
  head and int(math.max(NOW - head, 0)) or 0,
}
local after_last = '(' .. int(NOW)
for i = FIRST, #ARGV do
  local bound = int(NOW + tonumber(ARGV[i]))
  out[#out + 1] = redis.call('ZCOUNT', DUE, after_last, bound)
  after_last = '(' .. bound
end
local paused, resumes = false, nil
if redis.call('EXISTS', PAUSED) == 1 then
  paused, resumes = pause_state()
end
out[#out + 1] = int(paused and (resumes or 0) or -1)
local COUNTS = KEYS[11]
out[#out + 1] = redis.call('HGETALL', COUNTS)
return out
