-- Deletes dead letters: an id each. Returns 1 done, 0 not dead.
local outcomes = {}
for i = FIRST, #ARGV do
  local done = redis.call('ZREM', DEAD, ARGV[i])
  if done == 1 then
    redis.call('HDEL', GRAVES, ARGV[i])
    forget(ARGV[i])
  end
  outcomes[#outcomes + 1] = done
end
return outcomes
