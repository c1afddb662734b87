-- Deletes messages that wait: an id each. Returns OK, NONE or HELD for each, and UNKNOWN where
-- there is none because the first try may have deleted it.
local outcomes, taken, came_back, members, seen = {}, {}, {}, {}, {}
for i = FIRST, #ARGV do
  local id = ARGV[i]
  local m, why
  if seen[id] then
    why = 'NONE'
  else
    m, why = waiting(id)
  end
  if m then
    taken[#taken + 1], members[#members + 1] = id, m
    seen[id] = true
    if returned(m) then
      came_back[#came_back + 1] = id
    end
  end
  if RETRY and why == 'NONE' then
    why = 'UNKNOWN'
  end
  outcomes[#outcomes + 1] = why or 'OK'
end
if #taken > 0 then
  prove_release()
  redis.call('ZREM', DUE, '')
  if not forget(taken, came_back, all_there_is(came_back)) then
    for _, m in ipairs(members) do
      take_out(m)
    end
  end
end
return outcomes
