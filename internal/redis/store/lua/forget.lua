-- How many messages there are, for forget. It is read before anything is written: otherwise a user
-- without the right to read would get an error although the message is gone. came_back has ids of
-- messages that came back.
local function all_there_is(came_back)
  redis.call('ZREM', LEASES, '') -- removes nothing: proves that it may
  if #came_back > 0 then
    redis.call('HLEN', GENS) -- fails, where GENS has another type
  end
  return redis.call('HLEN', MSG)
end

-- Forgets messages, of which some came back. With the last one all keys go but UNIQUE, and entries
-- that a stop half-way left in them. Where the user may not delete keys, the message is gone all the
-- same. Returns whether the keys went.
local function forget(ids, came_back, all)
  local left = all - on('HDEL', MSG, ids)
  on('HDEL', GENS, came_back)
  return left == 0 and
    type(redis.pcall('UNLINK', DUE, LEASES, HELD, GENS, DEAD, GRAVES, SEQ, READY, TRIGGER ~= '' and TRIGGER or MSG)) == 'number'
end
