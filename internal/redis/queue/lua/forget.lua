-- Removes names from a list of queues that have not been entered again meanwhile. Arguments from
-- the third on: after how many seconds a name is old, and the names.
local now = tonumber(redis.call('TIME')[1])
for i = 4, #ARGV do
  local seen = redis.call('ZSCORE', KEYS[1], ARGV[i])
  if seen and tonumber(seen) <= now - tonumber(ARGV[3]) then
    redis.call('ZREM', KEYS[1], ARGV[i])
  end
end
return 0
