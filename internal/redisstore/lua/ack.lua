-- Deletes messages: a token each. Returns 1 done, 0 the lease is lost, 2 unknown. A repeated ack finds no message any more: then it is done, by the first try while nobody else could have it.
local ms, firsts = tokens(FIRST, 1)
local holds = holds_all(ms, firsts)
local ids, came_back = {}, {}
for i, m in ipairs(release_all(ms, holds)) do
  ids[i] = id_of(m)
  if returned(m) then
    came_back[#came_back + 1] = ids[i]
  end
end
forget(ids, came_back)

-- What a repeated ack tells of a lease that is not in force.
local function again(m, first)
  local rec = redis.call('HGET', MSG, id_of(m))
  if rec and seq_of(rec) == seq_of(m) then
    return 0
  end
  local ahead = (struct.unpack('>I4', first) - NOW) % 4294967296
  return (ahead > 0 and ahead < 2147483648) and 1 or 2
end

local outcomes = {}
for i, m in ipairs(ms) do
  outcomes[i] = holds[i] and 1 or RETRY and again(m, firsts[i]) or 0
end
return outcomes
