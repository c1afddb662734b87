-- Deletes messages: for each its member. Returns 1 done, 0 the lease is lost. A repeated ack finds no
-- message any more: then it is done.
local outcomes = {}
for i = FIRST, #ARGV do
  local m = ARGV[i]
  local id = id_of(m)
  if holds(m) then
    end_lease(m)
    forget(id)
    outcomes[#outcomes + 1] = 1
  else
    outcomes[#outcomes + 1] = (RETRY and redis.call('HEXISTS', MSG, id) == 0) and 1 or 0
  end
end
return outcomes
