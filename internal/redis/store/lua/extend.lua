-- Makes leases end in so many us: lease, then a token each. Returns the end of each in ms, or 0
-- where the lease is lost. Tells sleeping fetchers of the new end where it is before all others: they
-- would sleep for longer.
local till = after(tonumber(ARGV[FIRST]))
local text = int(till)
local ms, firsts = tokens(FIRST + 1, 1)
local first = tonumber(redis.call('ZRANGE', LEASES, 0, 0, 'WITHSCORES')[2])
none_ended = not first or first > NOW -- so that in_force need not ask
local entries, ends = {}, {}
for i, v in ipairs(holds_all(ms, firsts)) do
  if v then
    entries[#entries + 1], entries[#entries + 2] = text, ms[i]
  end
  ends[i] = v and text or '0'
end
redis.call('ZREM', LEASES, '') -- removes nothing: then a server out of memory lets an addition pass
on('ZADD', LEASES, entries)
local told = #entries > 0 and first and till < first and redis.pcall('PUBLISH', CHANNEL, text)
if type(told) == 'table' and told.err then
  return {ends, 'PUBLISH: ' .. told.err}
end
return ends
