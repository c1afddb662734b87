-- Moves due messages to the list READY until it has limit entries: limit. HELD keeps their due times.
-- Returns the time in us, the next event in ms, and how many there are in READY.
local limit = tonumber(ARGV[FIRST])
expire(limit + 100)
local lacking = limit - redis.call('LLEN', READY)
if lacking > 0 then
  local due = redis.call('ZRANGEBYSCORE', DUE, '-inf', int(NOW), 'WITHSCORES', 'LIMIT', 0, lacking)
  local ms, holds = {}, {}
  for i = 1, #due, 2 do
    ms[#ms + 1] = due[i]
    holds[i], holds[i + 1] = due[i], struct.pack('>d', tonumber(due[i + 1]))
  end
  on('ZREM', DUE, ms)
  on('RPUSH', READY, ms)
  on('HSET', HELD, holds)
end
return {int(NOW_US), int(next_event()), redis.call('LLEN', READY)}
