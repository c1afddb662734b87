-- Enters names in a list of queues, with the time, in seconds. Arguments from the third on: how
-- many names to keep, for how many seconds to keep the list, after how many seconds a name is old,
-- and the names. Of too many names the oldest go, some at a time. Returns up to a hundred names
-- that are old.
local KEY, MOST, KEEP, OLD, FIRST = KEYS[1], tonumber(ARGV[3]), tonumber(ARGV[4]), tonumber(ARGV[5]), 6
local now = tonumber(redis.call('TIME')[1])
for i = FIRST, #ARGV do
  redis.call('ZADD', KEY, now, ARGV[i])
end
if #ARGV >= FIRST then
  local surplus = redis.call('ZCARD', KEY) - MOST
  if surplus > 0 then
    redis.call('ZREM', KEY, unpack(redis.call('ZRANGE', KEY, 0, math.min(surplus, 1000) - 1)))
  end
  redis.call('PEXPIRE', KEY, KEEP * 1000)
end
return redis.call('ZRANGEBYSCORE', KEY, '-inf', now - OLD, 'LIMIT', 0, 100)
