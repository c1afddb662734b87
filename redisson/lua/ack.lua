-- Deletes messages: for each its key and the lease's stamp. Returns 1 done, 0 the lease is lost, 2
-- unknown.
local outcomes, done, seen, aliases = {}, {}, {}, {}

-- Whether it was the holder's to the end: not when Java has had it. Then the lease stays until its
-- end, so that a repeated script finds it too.
local function mine(v)
  return ENVELOPE or redis.call('ZREM', TIMES, string.sub(v, member_at(v))) == 1
end

-- The first try would have deleted the message. One with an id of its pusher's may have been pushed
-- again since, and may be anywhere by now.
local function tells(where, _, before)
  if ENVELOPE then
    return (before or where == 'D') and 2 or nil
  end
  return 0
end

local function ack(key, v, mark)
  local was_mine = false
  if v and not seen[key] and string.sub(v, 1, STAMP) == mark and in_force(key) then
    seen[key] = true
    was_mine = mine(v)
    done[#done + 1] = was_mine and key or nil
    if was_mine and member_at(v) > 49 then
      local msg = held(key, v)
      aliases[#aliases + 1] = string.sub(msg.member, 1, msg.n) -- its prefix
    end
  end
  outcomes[#outcomes + 1] = was_mine and 1 or lost(key, mark, tells)
end

-- Reads some of the messages, from an argument on: more each time, but few large ones.
local function ack_some(at, n)
  local keys, bytes = {}, 1
  for i = at, math.min(at + 2 * n, #ARGV) - 1, 2 do
    keys[#keys + 1] = ARGV[i]
  end
  for i, v in ipairs(redis.call('HMGET', HELD, unpack(keys))) do
    ack(keys[i], v, ARGV[at + 2 * i - 1])
    bytes = bytes + (v and #v or 0)
  end
  return #keys, bytes
end

-- These remove nothing: they prove, before the first write, that the last ones are allowed.
redis.call('HDEL', HELD, '')
redis.call('ZREM', LEASES, '')
local at, n, bytes = FIRST, 8, 0
while at < #ARGV and not stops(outcomes, 2 * bytes) do
  local read
  read, bytes = ack_some(at, n)
  at, n = at + 2 * read, math.max(1, math.min(2 * n, 256, math.floor(read * 32768 / bytes)))
end
on('HDEL', HELD, done) -- first: an entry of LEASES without one of HELD is no lease
on('ZREM', LEASES, done)
if #aliases > 0 then
  redis.pcall('HDEL', STATES, unpack(aliases)) -- else forget_some finds them
end
tidy()
return outcomes
