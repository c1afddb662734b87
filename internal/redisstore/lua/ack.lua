-- Deletes messages: for each its member. Returns 1 done, 0 the lease is lost. A repeated ack finds no
-- message any more: then it is done.
local ms = {unpack(ARGV, FIRST)}
local holds = holds_all(ms)
local ids, came_back = {}, {}
for i, m in ipairs(release_all(ms, holds)) do
  ids[i] = id_of(m)
  if returned(m) then
    came_back[#came_back + 1] = ids[i]
  end
end
forget(ids, came_back)

local outcomes = {}
for i, m in ipairs(ms) do
  outcomes[i] = (holds[i] or RETRY and redis.call('HEXISTS', MSG, id_of(m)) == 0) and 1 or 0
end
return outcomes
