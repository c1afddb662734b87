-- Deletes messages that wait: an id each. Returns OK, NONE or HELD for each, and UNKNOWN where there is
-- none because the first try may have deleted it.
local outcomes, taken = {}, {}
for i = FIRST, #ARGV do
  local m, why = take_waiting(ARGV[i])
  if m then
    taken[#taken + 1] = ARGV[i]
  end
  if RETRY and why == 'NONE' then
    why = 'UNKNOWN'
  end
  outcomes[#outcomes + 1] = why or 'OK'
end
forget(taken, taken)
return outcomes
