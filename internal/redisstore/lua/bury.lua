-- Makes messages dead letters: for each member, reason. Returns 1 done, 0 the lease is lost. DEAD is
-- ordered by death; GRAVES has due time, attempts, time of death and the reason.
local outcomes = {}
for i = FIRST, #ARGV, 2 do
  local m = ARGV[i]
  local id = id_of(m)
  if holds(m) then
    local due = end_lease(m)
    local gen, untouched = gens(id)
    redis.call('ZADD', DEAD, int(count()), id)
    redis.call('HSET', GRAVES, id, struct.pack('>dI4d', due, gen + 1 - untouched, NOW) .. ARGV[i + 1])
    outcomes[#outcomes + 1] = 1
  else
    outcomes[#outcomes + 1] = (RETRY and redis.call('ZSCORE', DEAD, id)) and 1 or 0
  end
end
return outcomes
