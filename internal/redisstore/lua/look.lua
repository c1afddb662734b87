-- Only reads: up to so many of the first messages with their due times, for who arbitrates. Returns the
-- time in us, the end of the first lease in ms or -1, how many a mover left in READY, and a member and its
-- due time in ms each.
local till = redis.call('ZRANGE', LEASES, 0, 0, 'WITHSCORES')[2]
local out = {int(NOW_US), till and int(tonumber(till)) or '-1', redis.call('LLEN', READY)}
for i, v in ipairs(redis.call('ZRANGE', DUE, 0, tonumber(ARGV[FIRST]) - 1, 'WITHSCORES')) do
  out[#out + 1] = i % 2 == 1 and v or int(tonumber(v))
end
return out
