-- Reads up to so many of the first messages with their due times, for Arbitrate; none while the queue
-- is paused. Returns the time in us, the end of the first lease in ms or -1, 1 where a mover left
-- messages in READY and -1 where nothing is due and the queue has shards elsewhere, and a member and
-- its due time in ms each. While the queue is paused, the end of the pause counts as one of a lease.
-- It stops at so many bytes of content, as a claim does. HELD, GENS and MSG are read for their types
-- and the right to it: a MULTI goes on after a command that fails, and a message that cannot be read
-- has spent an attempt.
local room = 8 * 1024 * 1024
local ends = tonumber(redis.call('ZRANGE', LEASES, 0, 0, 'WITHSCORES')[2])
local SPLIT = KEYS[12]
local there = redis.call('EXISTS', PAUSED, READY, READY, SPLIT, SPLIT, SPLIT, SPLIT) -- READY counts twice, and SPLIT four times
local nothing = there > 3 and -1 or 0
if there % 2 == 1 then
  local paused, resumes = pause_state()
  if paused then
    return {int(NOW_US), int(math.min(ends or resumes or -1, resumes or ends or -1)), nothing}
  end
end
local out = {int(NOW_US), int(ends or -1), 0}
for _, key in ipairs({HELD, GENS, MSG}) do
  redis.call('HMGET', key, '')
end
local page = redis.call('ZRANGE', DUE, 0, tonumber(ARGV[FIRST]) - 1, 'WITHSCORES')
if there % 4 > 1 then
  out[3] = 1
elseif not page[2] or tonumber(page[2]) > NOW then
  out[3] = nothing
end
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
