-- Deletes all that there is of the queue but what says that it has shards. Returns how many messages it
-- had.
local removed = redis.call('HLEN', MSG)
local keys = {unpack(KEYS, 1, 11)}
if TRIGGER ~= '' then
  keys[12] = TRIGGER
end
redis.call('UNLINK', unpack(keys))
return removed
