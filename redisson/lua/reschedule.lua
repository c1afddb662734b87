-- Moves messages that wait: for each its key, origin, due time in ms or '', delay in us. Returns
-- OK, NONE or HELD for each, and UNKNOWN where none waits, perhaps because the first try moved it
-- and a worker took it since.
local outcomes, bytes = {}, 0

-- Returns whether the message was there.
local function move(msg, due)
  if msg.ended then
    give_back(msg, due, msg.attempts)
  elseif msg.payload then
    put_back(msg, due, msg.attempts)
    return take_handed(msg)
  else -- its place in INDEX is that of its offer
    prove()
    remember(msg, due, msg.attempts)
    set_due(msg.member, due)
    commit()
  end
  return true
end

redis.call('ZRANGE', TIMES, 0, 0) -- find needs it only for some of the messages
for i = FIRST, #ARGV, 4 do
  if stops(outcomes, 4 * bytes) then
    break
  end
  local msg, why = find_waiting(ARGV[i], tonumber(ARGV[i + 1]))
  local due = due_of(ARGV[i + 2], ARGV[i + 3])
  if msg and move(msg, due) then
    announce(msg.member, due)
  elseif msg then
    msg, why = nil, 'NONE'
  end
  bytes = msg and #msg.member or 0
  outcomes[#outcomes + 1] = msg and 'OK' or RETRY and 'UNKNOWN' or why
end
return told(outcomes)
