-- Makes messages dead letters: for each member, reason. Returns 1 done, 0 the lease is lost. DEAD is
-- ordered by death; GRAVES has due time, attempts, time of death and the reason.
local ms = {}
for i = FIRST, #ARGV, 2 do
  ms[#ms + 1] = ARGV[i]
end
local holds = holds_all(ms)
local died = #release_all(ms, holds)
local last = died > 0 and reserve(died)

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
    outcomes[i] = (RETRY and redis.call('ZSCORE', DEAD, id)) and 1 or 0
  end
end
return outcomes
