-- Schedules dead letters again, due now, as if they had just been pushed: an id each. Returns 1
-- done, 0 not dead, 2 not dead or done by the first try. The content stays as it is, however large:
-- GENS has the new seq.
local outcomes = {}
for i = FIRST, #ARGV do
  local id = ARGV[i]
  local dead = redis.call('ZSCORE', DEAD, id)
  local size = dead and redis.call('HSTRLEN', MSG, id)
  if dead and size > 0 then
    -- These change nothing: they prove that the commands after the first write are allowed.
    redis.call('ZREM', DEAD, '')
    redis.call('HDEL', GRAVES, '')
    redis.call('ZADD', DUE, 'XX', 0, '')
    local gen = gens(id) + 1
    local s = seq(reserve(1) + 1, size - 7)
    local m = member(s, gen, id)
    redis.call('HSET', GENS, id, struct.pack('>I4I4', gen, gen) .. s)
    redis.call('ZADD', DUE, int(after(0)), m)
    redis.call('ZREM', DEAD, id)
    redis.call('HDEL', GRAVES, id)
    announce(m, NOW)
    outcomes[#outcomes + 1] = 1
  else
    outcomes[#outcomes + 1] = RETRY and 2 or 0
  end
end
return told(outcomes)
