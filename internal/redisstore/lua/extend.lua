-- Makes leases end in so many us: lease, then a token each. Returns the end of each in ms, or 0 where
-- the lease is lost.
local till = int(after(tonumber(ARGV[FIRST])))
local ms, firsts = tokens(FIRST + 1, 1)
local members, entries, ends = {}, {}, {}
for i, v in ipairs(holds_all(ms, firsts)) do
  if v then
    members[#members + 1] = ms[i]
    entries[#entries + 1], entries[#entries + 2] = till, ms[i]
  end
  ends[i] = v and till or '0'
end
on('ZREM', LEASES, members) -- an addition alone is refused by a server out of memory
on('ZADD', LEASES, entries)
return ends
