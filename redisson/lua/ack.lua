-- Deletes messages: for each the lease's number and its first end in ms. Returns 1 done, 0 the lease is lost, 2
-- unknown.
local leases = {}
for i = FIRST, #ARGV, 2 do
  leases[#leases + 1] = number(tonumber(ARGV[i]))
end
local holds = redis.call('HMGET', HELD, unpack(leases))

-- Whether it was the holder's to the end.
local function mine(lease, v, ends)
  if not v or struct.unpack('>d', v, 21) ~= tonumber(ends) or not in_force(lease) then
    return false
  end
  return ENVELOPE or redis.call('ZREM', TIMES, rescue(lease, held(v).payload)) == 1
end

local outcomes, done, keys, seen = {}, {}, {}, {}
for i, lease in ipairs(leases) do
  local v, ends = holds[i], ARGV[FIRST + 2 * i - 1]
  if not seen[lease] and mine(lease, v, ends) then
    seen[lease] = true
    done[#done + 1], keys[#keys + 1] = lease, held_key(v)
    outcomes[i] = 1
  else
    outcomes[i] = lost(ends)
  end
end
on('ZREM', LEASES, done)
on('HDEL', HELD, done)
on('HDEL', STATES, keys)
tidy()
return outcomes
