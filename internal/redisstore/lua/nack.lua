-- Gives messages back: for each member, delay in us, '1' when untouched. Returns 1 done, 0 the lease
-- is lost, 2 unknown: it was lost or the first try has done it.

-- Whether the first try gave the message back. The end of the lease would have made it due at once.
local function done_before(m, delay)
  local back = member(seq_of(m), struct.unpack('>I4', string.sub(m, 8, 11)) + 1, id_of(m))
  local due = redis.call('ZSCORE', DUE, back)
  return due and (delay == 0 or tonumber(due) > NOW)
end

local outcomes = {}
for i = FIRST, #ARGV, 3 do
  local m, untouched = ARGV[i], ARGV[i + 2] == '1'
  if holds(m) then
    local due = end_lease(m)
    if not untouched then
      due = after(tonumber(ARGV[i + 1]))
    end
    announce(put_back(m, due, untouched), due)
    set_trigger(id_of(m), due)
    outcomes[#outcomes + 1] = 1
  elseif RETRY then
    outcomes[#outcomes + 1] = done_before(m, untouched and 0 or tonumber(ARGV[i + 1])) and 1 or 2
  else
    outcomes[#outcomes + 1] = 0
  end
end
return outcomes
