-- Deletes messages: for each its key and the lease's stamp. Returns 1 done, 0 the lease is lost, 2 unknown.
local keys = {}
for i = FIRST, #ARGV, 2 do
  keys[#keys + 1] = ARGV[i]
end
local holds = redis.call('HMGET', HELD, unpack(keys))

-- Whether it was the holder's to the end: not when Java has had it.
local function mine(v)
  return ENVELOPE or redis.call('ZREM', TIMES, string.sub(v, member_at(v))) == 1
end

local outcomes, done, seen, aliases = {}, {}, {}, {}
for i, key in ipairs(keys) do
  local v, mark, was_mine = holds[i], ARGV[FIRST + 2 * i - 1], false
  if v and not seen[key] and string.sub(v, 1, STAMP) == mark and in_force(key) then
    seen[key] = true
    done[#done + 1] = key
    was_mine = mine(v)
    if member_at(v) > 49 then
      aliases[#aliases + 1] = prefix_of(held(key, v))
    end
  end
  outcomes[i] = was_mine and 1 or lost(mark)
end
on('ZREM', LEASES, done)
on('HDEL', HELD, done)
on('HDEL', STATES, aliases)
tidy()
return outcomes
