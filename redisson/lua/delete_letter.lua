-- Deletes the dead letter of a key.
local function delete_letter(key)
  -- These remove nothing: they prove that the last commands are allowed.
  redis.call('ZREM', DEAD, '')
  redis.call('HDEL', GRAVES, '')
  redis.call('HDEL', STATES, key) -- first: it would keep the id taken
  redis.call('ZREM', DEAD, key)
  redis.call('HDEL', GRAVES, key)
end
