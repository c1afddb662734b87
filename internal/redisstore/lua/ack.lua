-- Deletes messages: for each its member, and when its lease was to end if not extended, in ms modulo 2^32. Returns 1 done, 0 the lease is
-- lost, 2 unknown. A repeated ack finds no message any more: then it is done, by the first try while nobody else could have it.
local ms = {}
for i = FIRST, #ARGV, 2 do
  ms[#ms + 1] = ARGV[i]
end
local holds = holds_all(ms)
local ids, came_back = {}, {}
for i, m in ipairs(release_all(ms, holds)) do
  ids[i] = id_of(m)
  if returned(m) then
    came_back[#came_back + 1] = ids[i]
  end
end
forget(ids, came_back)

-- What a repeated ack tells of a lease that is not in force.
local function again(m, till)
  local rec = redis.call('HGET', MSG, id_of(m))
  if rec and seq_of(rec) == seq_of(m) then
    return 0
  end
  local ahead = (till - NOW) % 4294967296
  return (ahead > 0 and ahead < 2147483648) and 1 or 2
end

local outcomes = {}
for i, m in ipairs(ms) do
  outcomes[i] = holds[i] and 1 or RETRY and again(m, tonumber(ARGV[FIRST + 2 * i - 1])) or 0
end
return outcomes
