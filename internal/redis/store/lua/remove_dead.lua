-- Deletes some dead letters.
local function remove_dead(gone)
  if #gone == 0 then
    return
  end
  -- These remove nothing: they prove that the last commands are allowed.
  redis.call('ZREM', DEAD, '')
  redis.call('HDEL', GRAVES, '')
  local came_back = redis.call('EXISTS', GENS) == 1 and gone or {}
  forget(gone, came_back, all_there_is(came_back))
  on('HDEL', GRAVES, gone)
  on('ZREM', DEAD, gone)
end
