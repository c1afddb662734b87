-- Deletes messages: a token each, as ack_all has them. Returns 1 done, 0 the lease is lost, 2 unknown, 3 nothing done, since
-- the message was replaced in flight, and is to be given back. A repeated ack
-- that finds no message is done: the first try deleted it, if no other worker could have had it.
local ms, firsts = {}, {}
for i = FIRST + 1, #ARGV do
  local token = SHARED .. ARGV[i]
  firsts[#firsts + 1], ms[#ms + 1] = string.sub(token, 1, 4), string.sub(token, 5)
end
local holds = holds_all(ms, firsts)
local outcomes = {}
for i, m in ipairs(ms) do
  if holds[i] and replaced(m, holds[i]) then
    holds[i], outcomes[i] = false, 3
  end
end
local done = held(ms, holds)
local ids, came_back = {}, {}
for i, m in ipairs(done) do
  ids[i] = id_of(m)
  if returned(m) then
    came_back[#came_back + 1] = ids[i]
  end
end
if #done > 0 then
  local all = all_there_is(came_back)
  -- Stopped in between, the message comes again or its lease ends as one of no message.
  on('HDEL', HELD, done)
  if not forget(ids, came_back, all) then
    on('ZREM', LEASES, done)
  end
end

-- The outcome of a repeated ack for a lease that is not in force.
local function again(m, first)
  local now = current(id_of(m))
  if now and seq_of(now) == seq_of(m) then
    return 0
  end
  local ahead = (struct.unpack('>I4', first) - NOW) % 4294967296
  return (ahead > 0 and ahead < 2147483648) and 1 or 2
end

for i, m in ipairs(ms) do
  outcomes[i] = outcomes[i] or holds[i] and 1 or RETRY and again(m, firsts[i]) or 0
end
return outcomes
