-- Deletes dead letters: an id each. Returns 1 done, 0 not dead, 2 not dead or deleted by the
-- first try.
local outcomes, gone = {}, {}
for i = FIRST, #ARGV do
  local done = redis.call('ZREM', DEAD, ARGV[i])
  if done == 1 then
    gone[#gone + 1] = ARGV[i]
  end
  outcomes[#outcomes + 1] = (RETRY and done == 0) and 2 or done
end
on('HDEL', GRAVES, gone)
forget(gone, gone)
return outcomes
