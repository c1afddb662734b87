-- Deletes dead letters: an id each. Returns 1 done, 0 not dead, 2 not dead or deleted by the
-- first try.
local outcomes, gone, seen = {}, {}, {}
for i = FIRST, #ARGV do
  local id = ARGV[i]
  local dead = not seen[id] and redis.call('ZSCORE', DEAD, id)
  if dead then
    gone[#gone + 1] = id
    seen[id] = true
  end
  outcomes[#outcomes + 1] = dead and 1 or RETRY and 2 or 0
end
remove_dead(gone)
return outcomes
