-- Gives messages back: for each token, delay in us, '1' when untouched. Returns 1 done, 0 the lease
-- is lost, 2 unknown: it was lost or the first try has done it.

-- Whether the first try gave the message back. The end of the lease would have made it due at once.
local function done_before(m, delay)
  local back = member(seq_of(m), struct.unpack('>I4', string.sub(m, 8, 11)) + 1, id_of(m))
  local due = redis.call('ZSCORE', DUE, back)
  return due and (delay == 0 or tonumber(due) > NOW)
end

local ms, firsts = tokens(FIRST, 3)
local holds = holds_all(ms, firsts)
release_all(ms, holds)

local outcomes, dues = {}, {}
for i, m in ipairs(ms) do
  local delay, untouched = tonumber(ARGV[FIRST + 3 * i - 2]), ARGV[FIRST + 3 * i - 1] == '1'
  if holds[i] then
    local due = untouched and due_in(holds[i]) or after(delay)
    local back = put_back(m, due, untouched)
    dues[back] = due
    outcomes[i] = 1
  elseif RETRY then
    outcomes[i] = done_before(m, untouched and 0 or delay) and 1 or 2
  else
    outcomes[i] = 0
  end
end
local head = redis.call('ZRANGE', DUE, 0, 0)[1] -- of equal due times the first by push order, which need not be the first here
if dues[head] then
  tell(dues[head])
end
return outcomes
