-- Gives messages back: for each token, delay in us, '1' when untouched. Returns 1 done, 0 the lease
-- is lost, 2 unknown: it was lost or the first try has done it.

-- Whether the first try gave the message back. The end of the lease would have made it due at once.
local function done_before(m, delay)
  local back = member(seq_of(m), gen_of(m) + 1, id_of(m))
  local due = redis.call('ZSCORE', DUE, back)
  return due and (delay == 0 or tonumber(due) > NOW)
end

local ms, firsts = tokens(FIRST, 3)
local holds = holds_all(ms, firsts)
local given = held(ms, holds)

local outcomes, dues, untouched = {}, {}, {}
for i, m in ipairs(ms) do
  local delay, unseen = tonumber(ARGV[FIRST + 3 * i - 2]), ARGV[FIRST + 3 * i - 1] == '1'
  if holds[i] then
    dues[#dues + 1] = unseen and due_in(holds[i]) or after(delay)
    untouched[#dues] = unseen
    outcomes[i] = 1
  elseif RETRY then
    outcomes[i] = done_before(m, unseen and 0 or delay) and 1 or 2
  else
    outcomes[i] = 0
  end
end
if #given > 0 then
  prove_release()
  local backs = put_back(given, dues, untouched)
  release(given)
  local head = first_waiting() -- of equal due times the first by push order, which need not be the first here
  for i, back in ipairs(backs) do
    if back == head then
      tell(dues[i])
    end
  end
end
return told(outcomes)
