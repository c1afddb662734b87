-- Deletes dead letters: a key each. Returns 1 done, 0 not dead, 2 not dead or deleted by the first
-- try.
local outcomes, gone, seen = {}, {}, {}
for i = FIRST, #ARGV do
  local key = ARGV[i]
  local dead = not seen[key] and redis.call('ZSCORE', DEAD, key)
  if dead then
    gone[#gone + 1] = key
    seen[key] = true
  end
  outcomes[#outcomes + 1] = dead and 1 or RETRY and 2 or 0
end
delete_letters(gone)
tidy()
return outcomes
