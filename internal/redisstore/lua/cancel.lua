-- Deletes messages that wait: an id each. Returns OK, NONE or HELD for each.
local outcomes = {}
for i = FIRST, #ARGV do
  local m, why = take_waiting(ARGV[i])
  if m then
    forget(ARGV[i])
  end
  outcomes[#outcomes + 1] = why or 'OK'
end
return outcomes
