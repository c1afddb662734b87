-- Deletes all that there is of the queue. Returns how many messages it had.
if redis.call('TYPE', DUE).ok == 'string' and string.find(redis.call('GET', DUE), '^shards ') then
  redis.call('ZCARD', DUE) -- fails, as all other scripts do where the queue is split into shards
end
local removed = redis.call('HLEN', MSG)
if TRIGGER ~= '' then
  KEYS[#KEYS + 1] = TRIGGER
end
redis.call('UNLINK', unpack(KEYS))
return removed
