-- Schedules dead letters again, due now, as if they had just been pushed: an id each. Returns 1 done,
-- 0 not dead, 2 not dead or done by the first try.
local outcomes = {}
for i = FIRST, #ARGV do
  local id = ARGV[i]
  if redis.call('ZREM', DEAD, id) == 1 then
    redis.call('HDEL', GRAVES, id)
    redis.call('HDEL', GENS, id)
    local content = content_of(redis.call('HGET', MSG, id))
    local s = seq(reserve(1) + 1, content)
    redis.call('HSET', MSG, id, s .. content)
    local m = member(s, 0, id)
    redis.call('ZADD', DUE, int(after(0)), m)
    announce(m, NOW)
    outcomes[#outcomes + 1] = 1
  else
    outcomes[#outcomes + 1] = RETRY and 2 or 0
  end
end
return outcomes
