-- Deletes messages: for each the lease's number and its first end in ms. Returns 1 done, 0 the lease is lost, 2
-- unknown.
local leases = {}
for i = FIRST, #ARGV, 2 do
  leases[#leases + 1] = number(tonumber(ARGV[i]))
end
local holds = redis.call('HMGET', HELD, unpack(leases))

-- The key of what was the holder's to the end.
local function mine(lease, v, ends)
  if not v or first_end(v) ~= tonumber(ends) or not in_force(lease) then
    return nil
  end
  local key, tail = held_parts(v)
  return (ENVELOPE or redis.call('ZREM', TIMES, rescue(lease, tail)) == 1) and key
end

local outcomes, done, keys, seen = {}, {}, {}, {}
for i, lease in ipairs(leases) do
  local ends = ARGV[FIRST + 2 * i - 1]
  local key = not seen[lease] and mine(lease, holds[i], ends)
  if key then
    seen[lease] = true
    done[#done + 1], keys[#keys + 1] = lease, key
  end
  outcomes[i] = key and 1 or lost(ends)
end
on('ZREM', LEASES, done)
on('HDEL', HELD, done)
on('HDEL', STATES, keys)
tidy()
return outcomes
