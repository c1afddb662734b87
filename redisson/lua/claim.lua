-- Leases up to limit messages that are due: limit, lease in us, the claim's own name of 8 bytes. Returns the
-- time in us, the next event in ms, and for each message the lease's number (7 bytes) and what is in HELD. A repeated claim returns what its first try has leased. What is in DEST is
-- taken too: it may have come from Java.
local limit, till, claim = tonumber(ARGV[FIRST]), after(tonumber(ARGV[FIRST + 1])), ARGV[FIRST + 2]
local out = {int(NOW_US), ''}

-- A claim stops at so many bytes of payload, that a reply of large messages stays bearable.
local ROOM = 8 * 1024 * 1024

local function hand_out(lease, v)
  out[#out + 1] = lease
  out[#out + 1] = v
end

-- The first try may be so many ms older than AGE says: this one has had to connect first.
local CONNECTING = 5000

local function claimed_before()
  local since = math.floor(till - AGE / 1000) - CONNECTING
  for _, lease in ipairs(redis.call('ZRANGEBYSCORE', LEASES, int(since), int(till))) do
    local v = redis.call('HGET', HELD, lease)
    if v and string.sub(v, 29, 36) == claim and in_force(lease) then
      hand_out(lease, v)
    end
  end
  return #out > 2
end

-- Whether an item of DEST comes before a message in TIMES.
local function before(item, msg)
  if not item.msg or not msg then
    return true
  elseif item.msg.due ~= msg.due then
    return item.msg.due < msg.due
  end
  return compare(item.msg.member, msg.member, 17) < 0
end

-- Chooses what is due, in order, and takes it out.
local function choose(due, there)
  local chosen = {}
  while #chosen < limit and ROOM > 0 and (#chosen == 0 or not spent()) do
    local msg, item = due.peek(), there.peek()
    if item and before(item, msg) then
      there.pop()
      if item.readable then
        chosen[#chosen + 1] = item.msg or item
        ROOM = ROOM - #item.payload
      else
        quarantine('D', item.payload, NOW)
      end
    elseif msg then
      if due.pop() then
        chosen[#chosen + 1] = msg
        ROOM = ROOM - #msg.member
      end
    else
      break
    end
  end
  due.done()
  return chosen
end

-- What came from DEST and is unknown gets an id of its own, in the form that all versions read.
local function identify(chosen, last)
  local keys = {}
  for i, c in ipairs(chosen) do
    if not c.member then
      chosen[i] = parse(new_member(last + i, c.payload, 'Both'), NOW)
    end
    keys[i] = chosen[i].key
  end
  for i, state in ipairs(redis.call('HMGET', STATES, unpack(keys))) do
    if state then
      recall(chosen[i], state)
    end
  end
end

local function lease_all(msgs)
  local last = reserve(2 * #msgs)
  identify(msgs, last)
  local leases, holds, states, rescues, aliases = {}, {}, {}, {}, {}
  local ends, end_of_rescue = int(till), int(till + GRACE)
  for i, msg in ipairs(msgs) do
    local lease = number(last + #msgs + i)
    local a, b = 2 * i - 1, 2 * i
    leases[a], leases[b] = ends, lease
    local v = hold(msg, till, claim)
    holds[a], holds[b] = lease, v
    states[a], states[b] = msg.key, 'L' .. lease
    if not ENVELOPE then
      rescues[a], rescues[b] = end_of_rescue, rescue(lease, tail_of(msg))
    end
    aliases[#aliases + 1] = msg.alias
    hand_out(lease, v)
  end
  on('HDEL', STATES, aliases)
  on('ZADD', LEASES, leases)
  on('HSET', HELD, holds)
  on('HSET', STATES, states)
  on('ZADD', TIMES, rescues)
  announce(rescues[2], till + GRACE)
end

local function next_event()
  local head = redis.call('ZRANGE', TIMES, 0, 0, 'WITHSCORES')[2]
  local ends = redis.call('ZRANGE', LEASES, 0, 0, 'WITHSCORES')[2]
  if redis.call('LLEN', DEST) > 0 then
    return NOW
  elseif not head and not ends then
    return -1
  end
  return math.min(tonumber(head or ends), tonumber(ends or head))
end

redis.call('LLEN', DEST) -- where it is no list, the error comes before any write
if not (RETRY and claimed_before()) then
  expire(100)
  local chosen = choose(reader(limit), taker())
  if #chosen > 0 then
    lease_all(chosen)
  else
    forget_some()
    tidy()
  end
end
out[2] = int(next_event())
return out
