-- The counts that forget needs. They are read before anything is written: otherwise a user without
-- the right to read would get an error although the message is gone.
local function all_there_is()
  redis.call('ZREM', LEASES, '') -- removes nothing: proves that it may
  local count = redis.call('HLEN', MSG)
  local returned = redis.call('HLEN', GENS) > 0 -- fails, where GENS has another type, before any write
  return {count = count, returned = returned}
end

-- Forgets messages. With the last one all keys go but UNIQUE, and entries that a stop half-way left
-- in them. Where the user may not delete keys, the message is gone all the same. Returns whether
-- the keys went.
local function forget(ids, all)
  local left = all.count - on('HDEL', MSG, ids)
  if all.returned then
    on('HDEL', GENS, ids)
  end
  return left == 0 and
    type(redis.pcall('UNLINK', DUE, LEASES, HELD, GENS, DEAD, GRAVES, SEQ, READY, TRIGGER ~= '' and TRIGGER or MSG)) == 'number'
end
