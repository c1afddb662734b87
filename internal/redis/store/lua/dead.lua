-- Makes messages dead letters: for each token, reason. Returns 1 done, 0 the lease is lost, 2
-- unknown: the first try may have made a dead letter that was redriven or deleted since. DEAD is
-- ordered by death. 3 is as in ack. GRAVES has due time, attempts, time of death and the reason.
local ms, firsts = tokens(FIRST, 2)
local holds = holds_all(ms, firsts)
local outcomes, deaths, letters = {}, {}, {}
for i, m in ipairs(ms) do
  if holds[i] and replaced(m, holds[i]) then
    holds[i], outcomes[i] = false, 3
  end
end
local dying = held(ms, holds)

-- The outcome of a repeated script for a lease that is not in force.
local function again(m)
  if redis.call('ZSCORE', DEAD, id_of(m)) then
    return 1
  end
  local now = current(id_of(m))
  return (now and seq_of(now) == seq_of(m)) and 0 or 2
end

local last = 0
if #dying > 0 then
  prove_release()
  redis.call('ZADD', DEAD, 'XX', 0, '') -- adds nothing: proves that the addition after the first is allowed
  last = reserve(#dying)
end
for i, m in ipairs(ms) do
  local id = id_of(m)
  if holds[i] then
    local gen, untouched = gens(id)
    last = last + 1
    deaths[#deaths + 1], deaths[#deaths + 2] = int(last), id
    letters[#letters + 1], letters[#letters + 2] =
      id, struct.pack('>dI4d', due_in(holds[i]), gen + 1 - untouched, NOW) .. ARGV[FIRST + 2 * i - 1]
    outcomes[i] = 1
  elseif not outcomes[i] then
    outcomes[i] = RETRY and again(m) or 0
  end
end
on('HSET', GRAVES, letters)
on('ZADD', DEAD, deaths)
release(dying)
return outcomes
