-- Deletes all that there is of the queue. Returns how many messages that were.
local removed = redis.call('HLEN', MSG)
redis.call('UNLINK', unpack(KEYS))
if TRIGGER ~= '' then
  redis.call('DEL', TRIGGER)
end
return removed
