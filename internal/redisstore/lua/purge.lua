-- Deletes all that there is of the queue: how many messages at once, where each may have a trigger. Returns how many
-- messages it deleted, and 1 where there are more.
local limit = tonumber(ARGV[FIRST])
local removed = 0

-- A trigger is a key of its own. So where there are any, messages go in parts, that Redis is not kept long.
local function part()
  local ids = {}
  for i, m in ipairs(redis.call('ZREVRANGE', DUE, 0, limit - 1)) do
    ids[i] = id_of(m)
  end
  on('HDEL', MSG, ids)
  on('HDEL', GENS, ids)
  drop_triggers(ids)
  return redis.call('ZREMRANGEBYRANK', DUE, -limit, -1)
end

if TRIGGER ~= '' then
  removed = part()
  if redis.call('EXISTS', DUE) == 1 then
    return {removed, 1}
  end
end
removed = removed + redis.call('HLEN', MSG)
redis.call('UNLINK', unpack(KEYS))
return {removed, 0}
