-- Gives messages back: for each its key, the lease's stamp, delay in us, '1' when untouched.
-- Returns 1 done, 0 the lease is lost, 2 unknown.
local outcomes, returned, seen, bytes = {}, {}, {}, 0
local earliest
for i = FIRST, #ARGV, 4 do
  if stops(outcomes, 4 * bytes) then
    break
  end
  local msg = not seen[ARGV[i]] and message_of(ARGV[i], ARGV[i + 1])
  if msg then
    seen[msg.key] = true
    local due, attempts = after(tonumber(ARGV[i + 2])), msg.attempts
    if ARGV[i + 3] == '1' then
      due, attempts = msg.due, attempts - 1
    end
    returned[#returned + 1] = {msg, due, attempts}
    earliest = math.min(earliest or due, due)
  end
  bytes = msg and #msg.member or 0
  outcomes[#outcomes + 1] = msg and 1 or lost(ARGV[i], ARGV[i + 1], function(where, due)
    -- A lease that ended by itself makes it due at once too.
    local at_once = ARGV[i + 2] == '0' or ARGV[i + 3] == '1'
    return (where ~= 'W' or due <= NOW and not at_once) and 2 or nil
  end)
end

-- Messages that are put back go to the head of INDEX, the last one first, so that they keep their
-- order.
for i = #returned, 1, -1 do
  give_back(unpack(returned[i]))
end
if earliest then
  announce_time(earliest)
end
return told(outcomes)
