-- Deletes all that there is of the queue: what Java pushed, and what was put aside, too. Returns
-- how many messages that was.
local n = redis.call('ZCARD', TIMES) + redis.call('LLEN', DEST) + redis.call('ZCARD', DEAD) + redis.call('ZCARD', QUARANTINE)
if ENVELOPE then
  n = n + redis.call('ZCARD', LEASES) -- where Java may take them, they are in TIMES
end
redis.call('UNLINK', unpack(KEYS))
return n
