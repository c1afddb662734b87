-- Makes leases end in so many us: lease, then a member each. Returns the end of each in ms, or 0 where
-- the lease is lost.
local till = after(tonumber(ARGV[FIRST]))
local ends = {}
for i = FIRST + 1, #ARGV do
  if holds(ARGV[i]) then
    redis.call('ZREM', LEASES, ARGV[i]) -- an addition alone is refused by a server out of memory
    redis.call('ZADD', LEASES, int(till), ARGV[i])
    ends[#ends + 1] = int(till)
  else
    ends[#ends + 1] = '0'
  end
end
return ends
