-- Deletes dead letters: a key each. Returns 1 done, 0 not dead, 2 not dead or deleted by the first
-- try.
local outcomes = {}
for i = FIRST, #ARGV do
  local done = redis.call('ZSCORE', DEAD, ARGV[i]) and 1 or 0
  if done == 1 then
    delete_letter(ARGV[i])
  end
  outcomes[#outcomes + 1] = (RETRY and done == 0) and 2 or done
end
tidy()
return outcomes
