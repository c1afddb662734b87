-- Deletes dead letters: a key each. Returns 1 done, 0 not dead, 2 not dead or deleted by the first
-- try.
local outcomes = {}
for i = FIRST, #ARGV do
  local done = redis.call('ZSCORE', DEAD, ARGV[i]) and 1 or 0
  if done == 1 then
    -- These remove nothing: they prove that the last commands are allowed.
    redis.call('ZREM', DEAD, '')
    redis.call('HDEL', GRAVES, '')
    redis.call('HDEL', STATES, ARGV[i]) -- first: it would keep the id taken
    redis.call('ZREM', DEAD, ARGV[i])
    redis.call('HDEL', GRAVES, ARGV[i])
  end
  outcomes[#outcomes + 1] = (RETRY and done == 0) and 2 or done
end
tidy()
return outcomes
