-- Deletes dead letters: a key each. Returns 1 done, 0 not dead, 2 not dead or deleted by the first try.
local outcomes = {}
for i = FIRST, #ARGV do
  local done = redis.call('ZREM', DEAD, ARGV[i])
  if done == 1 then
    redis.call('HDEL', GRAVES, ARGV[i])
    redis.call('HDEL', STATES, ARGV[i])
  end
  outcomes[#outcomes + 1] = (RETRY and done == 0) and 2 or done
end
tidy()
return outcomes
