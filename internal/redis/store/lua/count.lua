-- Adds to the counts of pushed and acked messages, which are kept for some ms. The script's arguments
-- are these three.
local COUNTS = KEYS[11]
redis.call('HINCRBY', COUNTS, 'pushed', ARGV[FIRST])
redis.call('HINCRBY', COUNTS, 'acked', ARGV[FIRST + 1])
redis.call('PEXPIRE', COUNTS, ARGV[FIRST + 2])
