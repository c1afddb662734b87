-- Forgets messages. With the last one all keys go but UNIQUE, and so does what a stop half-way has left in them.
local function forget(ids)
  on('HDEL', MSG, ids)
  local left = redis.call('EXISTS', MSG, MSG, GENS) -- MSG counts twice
  if left % 2 == 1 then
    on('HDEL', GENS, ids)
  end
  if left < 2 then
    redis.call('UNLINK', DUE, LEASES, HELD, GENS, DEAD, GRAVES, SEQ, READY, TRIGGER ~= '' and TRIGGER or MSG)
  end
end
