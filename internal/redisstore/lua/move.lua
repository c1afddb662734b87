-- Moves due messages to the list READY until it has limit entries: limit. HELD keeps their due times.
-- Returns the time in us, the next event in ms, and how many there are in READY.
local limit = tonumber(ARGV[FIRST])
expire(limit + 100)
local lacking = limit - redis.call('LLEN', READY)
if lacking > 0 then
  local due = redis.call('ZRANGEBYSCORE', DUE, '-inf', NOW, 'WITHSCORES', 'LIMIT', 0, lacking)
  for i = 1, #due, 2 do
    redis.call('ZREM', DUE, due[i])
    redis.call('RPUSH', READY, due[i])
    redis.call('HSET', HELD, due[i], struct.pack('>d', tonumber(due[i + 1])))
  end
end
return {int(NOW_US), int(next_event()), redis.call('LLEN', READY)}
