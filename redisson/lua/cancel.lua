-- Deletes messages that wait: for each its key and origin. Returns OK, NONE or HELD for each, and UNKNOWN where there
-- is none because the first try may have deleted it.
local outcomes, bytes = {}, 0
for i = FIRST, #ARGV, 2 do
  if stops(outcomes, 4 * bytes) then
    break
  end
  local msg, why = take_waiting(ARGV[i], tonumber(ARGV[i + 1]))
  if msg then
    redis.call('HDEL', STATES, msg.key)
  elseif RETRY and why == 'NONE' then
    why = 'UNKNOWN'
  end
  bytes = msg and #msg.member or 0
  outcomes[#outcomes + 1] = msg and 'OK' or why
end
tidy()
return outcomes
