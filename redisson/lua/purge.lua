-- Deletes all that there is of the queue, with Java's messages and the quarantine. Returns how many
-- messages it had.
local n = redis.call('ZCARD', TIMES) + redis.call('LLEN', DEST) + redis.call('ZCARD', DEAD) + redis.call('ZCARD', QUARANTINE)
if ENVELOPE then
  n = n + redis.call('ZCARD', LEASES) -- where Java may take them, they are in TIMES
end
redis.call('UNLINK', unpack(KEYS))
return n
