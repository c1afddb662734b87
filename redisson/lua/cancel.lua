-- Deletes messages that wait: for each its key and origin. Returns OK, NONE or HELD for each, and
-- UNKNOWN where there is none because the first try may have deleted it.
local outcomes, bytes = {}, 0

-- Returns whether the message was there.
local function delete(msg)
  prove()
  redis.call('HDEL', STATES, '') -- as prove: the last command
  if msg.ended then
    end_lease(msg)
  elseif msg.payload then
    if not take_handed(msg) then
      return false
    end
  else
    unlist(msg.member)
    redis.call('ZREM', TIMES, msg.member)
    commit()
  end
  redis.call('HDEL', STATES, msg.key, prefix_of(msg))
  return true
end

for i = FIRST, #ARGV, 2 do
  if stops(outcomes, 4 * bytes) then
    break
  end
  local msg, why = find_waiting(ARGV[i], tonumber(ARGV[i + 1]))
  if msg and not delete(msg) then
    msg, why = nil, 'NONE'
  end
  if RETRY and not msg and why == 'NONE' then
    why = 'UNKNOWN'
  end
  bytes = msg and #msg.member or 0
  outcomes[#outcomes + 1] = msg and 'OK' or why
end
tidy()
return outcomes
