-- Makes messages dead letters: for each token, reason. Returns 1 done, 0 the lease is lost, 2 unknown: the first try may have
-- buried one that was redriven or deleted since. DEAD is ordered by death; GRAVES has due time, attempts, time of death and the reason.
local ms, firsts = tokens(FIRST, 2)
local holds = holds_all(ms, firsts)
local died = #release_all(ms, holds)
local last = died > 0 and reserve(died)

-- What a repeated burial tells of a lease that is not in force.
local function again(m)
  if redis.call('ZSCORE', DEAD, id_of(m)) then
    return 1
  end
  local rec = redis.call('HGET', MSG, id_of(m))
  return (rec and seq_of(rec) == seq_of(m)) and 0 or 2
end

local outcomes = {}
for i, m in ipairs(ms) do
  local id = id_of(m)
  if holds[i] then
    local gen, untouched = gens(id)
    last = last + 1
    redis.call('ZADD', DEAD, int(last), id)
    redis.call('HSET', GRAVES, id, struct.pack('>dI4d', due_in(holds[i]), gen + 1 - untouched, NOW) .. ARGV[FIRST + 2 * i - 1])
    outcomes[i] = 1
  else
    outcomes[i] = RETRY and again(m) or 0
  end
end
return outcomes
