-- Deletes all that there is of the queue. Returns how many messages it had.
local removed = redis.call('HLEN', MSG)
if TRIGGER ~= '' then
  KEYS[#KEYS + 1] = TRIGGER
end
redis.call('UNLINK', unpack(KEYS))
return removed
