-- Deletes the dead letters of keys.
local function delete_letters(keys)
  if #keys == 0 then
    return
  end
  -- These remove nothing: they prove that the last commands are allowed.
  redis.call('ZREM', DEAD, '')
  redis.call('HDEL', GRAVES, '')
  redis.call('HDEL', STATES, unpack(keys)) -- first: they would keep the ids taken
  redis.call('ZREM', DEAD, unpack(keys))
  redis.call('HDEL', GRAVES, unpack(keys))
end
