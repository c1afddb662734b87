-- Makes messages dead letters: for each its key, the lease's stamp, reason. Returns 1 done, 0 the
-- lease is lost, 2 unknown. GRAVES has due time, origin, attempts, time of death, length of the
-- reason, reason, member.
local outcomes, bytes = {}, 0

-- One that is no dead letter may have been redriven after the first try.
local function tells(where)
  return where == 'D' and 1 or 2
end

for i = FIRST, #ARGV, 3 do
  if stops(outcomes, 4 * bytes) then
    break
  end
  local msg, reason = message_of(ARGV[i], ARGV[i + 1]), ARGV[i + 2]
  if msg then
    prove()
    local death = struct.pack('>ddI4dI4', msg.due, msg.origin, msg.attempts, NOW, #reason)
    write({'HDEL', GRAVES, msg.key}, 'HSET', GRAVES, msg.key, death .. reason .. msg.member)
    set_state(msg.key, 'D')
    write({'ZREM', DEAD, msg.key}, 'ZADD', DEAD, int(reserve(1) + 1), msg.key)
    end_lease(msg)
  end
  bytes = msg and #msg.member or 0
  outcomes[#outcomes + 1] = msg and 1 or lost(ARGV[i], ARGV[i + 1], tells)
end
return outcomes
