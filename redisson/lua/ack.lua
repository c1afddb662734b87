-- Deletes messages: for each the lease's number and its first end in ms. Returns 1 done, 0 the lease is lost, 2
-- unknown.
local leases = {}
for i = FIRST, #ARGV, 2 do
  leases[#leases + 1] = number(tonumber(ARGV[i]))
end
local holds = redis.call('HMGET', HELD, unpack(leases))

-- Whether it was the holder's to the end: not when Java has had it.
local function mine(lease, v)
  local key, tail = held_parts(v)
  return ENVELOPE or redis.call('ZREM', TIMES, rescue(lease, tail)) == 1, key
end

local outcomes, done, keys, seen = {}, {}, {}, {}
for i, lease in ipairs(leases) do
  local v, ends, held_on = holds[i], ARGV[FIRST + 2 * i - 1], false
  if v and not seen[lease] and first_end(v) == tonumber(ends) and in_force(lease) then
    seen[lease] = true
    held_on, keys[#keys + 1] = mine(lease, v)
    done[#done + 1] = lease
  end
  outcomes[i] = held_on and 1 or lost(ends)
end
on('ZREM', LEASES, done)
on('HDEL', HELD, done)
on('HDEL', STATES, keys)
tidy()
return outcomes
