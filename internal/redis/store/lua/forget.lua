-- What forget goes by. It is read before anything is written: who may not read would be told of a failure, and the message would be gone.
local function all_there_is()
  redis.call('ZREM', LEASES, '') -- removes nothing: proves that it may
  local count = redis.call('HLEN', MSG)
  local returned = redis.call('EXISTS', GENS) == 1
  return {count = count, returned = returned}
end

-- Forgets messages. With the last one all keys go but UNIQUE, and so does what a stop half-way has left in them. Where they may not go the
-- message is gone all the same. Returns whether they went.
local function forget(ids, all)
  local left = all.count - on('HDEL', MSG, ids)
  if all.returned then
    on('HDEL', GENS, ids)
  end
  return left == 0 and
    type(redis.pcall('UNLINK', DUE, LEASES, HELD, GENS, DEAD, GRAVES, SEQ, READY, TRIGGER ~= '' and TRIGGER or MSG)) == 'number'
end
