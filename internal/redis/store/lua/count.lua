-- Adds to the queue's activity, which is kept for some ms. The script's arguments are this time, and
-- pairs of a field of COUNTS and a number.
local COUNTS = KEYS[11]
local kept = redis.call('PEXPIRE', COUNTS, ARGV[FIRST]) -- first: a user without this right changes nothing
for i = FIRST + 1, #ARGV, 2 do
  redis.call('HINCRBY', COUNTS, ARGV[i], ARGV[i + 1])
end
if kept == 0 then
  redis.call('PEXPIRE', COUNTS, ARGV[FIRST])
end
return 1
