-- Makes leases end in so many us: lease, then for each its number and its first end in ms. Returns the end of each in
-- ms, or 0 where the lease is lost.
local till = after(tonumber(ARGV[FIRST]))
local ends = {}

-- An addition alone is refused by a server out of memory.
local function move(lease, v)
  local spare = not ENVELOPE and rescue(lease, tail_of(held(v)))
  if spare and redis.call('ZREM', TIMES, spare) == 0 then
    return false
  end
  redis.call('ZREM', LEASES, lease)
  redis.call('ZADD', LEASES, int(till), lease)
  if spare then
    redis.call('ZADD', TIMES, int(till + GRACE), spare)
    announce(spare, till + GRACE)
  end
  return true
end

for i = FIRST + 1, #ARGV, 2 do
  local lease, v = given(ARGV[i], ARGV[i + 1])
  ends[#ends + 1] = lease and move(lease, v) and int(till) or '0'
end
return ends
