-- Only reads: up to so many of the first messages with their due times, for Arbitrate. Returns the
-- time in us, the end of the first lease in ms or -1, how many a mover left in READY, and a member
-- and its due time in ms each. It stops at so many bytes of content, as a claim does. HELD, GENS
-- and MSG are read for their types and the right to it: a MULTI goes on after a command that fails,
-- and a message that cannot be read has spent an attempt.
local room = 8 * 1024 * 1024
local till = redis.call('ZRANGE', LEASES, 0, 0, 'WITHSCORES')[2]
local out = {int(NOW_US), till and int(tonumber(till)) or '-1', redis.call('LLEN', READY)}
for _, key in ipairs({HELD, GENS, MSG}) do
  redis.call('HMGET', key, '')
end
local page = redis.call('ZRANGE', DUE, 0, tonumber(ARGV[FIRST]) - 1, 'WITHSCORES')
for i = 1, #page, 2 do
  if room <= 0 then
    break
  end
  local m = page[i]
  out[#out + 1], out[#out + 2] = m, int(tonumber(page[i + 1]))
  if (string.byte(m, 7) or 0) % 2 == 1 or string.sub(m, 8, 11) ~= '\0\0\0\0' then -- others are small, and have the headers of their push
    room = room - redis.call('HSTRLEN', MSG, id_of(m))
  end
end
return out
