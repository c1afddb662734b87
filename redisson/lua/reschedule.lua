-- Moves messages that wait: for each its key, origin, due time in ms or '', delay in us. Returns OK, NONE or HELD.
local outcomes, bytes = {}, 0
for i = FIRST, #ARGV, 4 do
  if stops(outcomes, 4 * bytes) then
    break
  end
  local msg, why = take_waiting(ARGV[i], tonumber(ARGV[i + 1]))
  if msg then
    local due = due_of(ARGV[i + 2], ARGV[i + 3])
    put_back(msg, due, msg.attempts)
    announce(msg.member, due)
  end
  bytes = msg and #msg.member or 0
  outcomes[#outcomes + 1] = msg and 'OK' or why
end
return outcomes
