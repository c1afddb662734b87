-- Has the store of a shard take no new ids. The argument is after how many ms that is forgotten, 0 for never.
-- Returns whether it refuses them only now.
local NOTE, forget = KEYS[11], tonumber(ARGV[FIRST])
local fresh = (RETRY or redis.call('EXISTS', NOTE) == 0) and 1 or 0
if forget > 0 then
  redis.call('SET', NOTE, 'ended', 'PX', forget)
else
  redis.call('SET', NOTE, 'ended')
end
return fresh
