-- Forgets messages that are in no list and no set any more: their ids, and those of them that may have come back.
local function forget(ids, came_back)
  on('HDEL', MSG, ids)
  on('HDEL', GENS, came_back)
  if redis.call('EXISTS', MSG) == 0 then
    redis.call('DEL', SEQ)
    if TRIGGER ~= '' then
      redis.call('DEL', TRIGGER)
    end
  end
end
