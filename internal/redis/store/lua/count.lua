-- Adds to the queue's activity, which is kept for some ms. The script's arguments are this time, and
-- pairs of a field of COUNTS and a number. A field where another program has written something else
-- begins at 0 again.
local COUNTS = KEYS[11]
local fields = {}
for i = FIRST + 1, #ARGV, 2 do
  fields[#fields + 1] = ARGV[i]
end
local old = redis.call('HMGET', COUNTS, unpack(fields)) -- first: a key of another type keeps its time to live
local kept = redis.call('PEXPIRE', COUNTS, ARGV[FIRST]) -- then: a user without this right changes nothing
for i, field in ipairs(fields) do
  if old[i] and not (#old[i] < 19 and string.find(old[i], '^%d+$')) then
    redis.call('HDEL', COUNTS, field)
  end
  redis.call('HINCRBY', COUNTS, field, ARGV[FIRST + 2 * i])
end
if kept == 0 then
  redis.call('PEXPIRE', COUNTS, ARGV[FIRST])
end
return 1
