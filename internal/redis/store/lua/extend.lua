-- Makes leases end in so many us: lease, then a token each. Returns the end of each in ms, or 0
-- where the lease is lost.
local till = int(after(tonumber(ARGV[FIRST])))
local ms, firsts = tokens(FIRST + 1, 1)
local entries, ends = {}, {}
for i, v in ipairs(holds_all(ms, firsts)) do
  if v then
    entries[#entries + 1], entries[#entries + 2] = till, ms[i]
  end
  ends[i] = v and till or '0'
end
redis.call('ZREM', LEASES, '') -- removes nothing: then a server out of memory lets an addition pass
on('ZADD', LEASES, entries)
return ends
