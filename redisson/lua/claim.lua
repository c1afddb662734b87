-- Leases up to limit messages that are due: limit, lease in us, the claim's own name of 8 bytes. Returns the
-- time in us, the next event in ms, and for each message the lease's number, key, payload, due time, origin, attempt
-- and the end of the lease. A repeated claim returns what its first try has leased. What is in DEST is
-- taken too: it may have come from Java.
local limit, till, claim = tonumber(ARGV[FIRST]), after(tonumber(ARGV[FIRST + 1])), ARGV[FIRST + 2]
local out = {int(NOW_US), ''}

-- A claim stops at so many bytes of payload, that a reply of large messages stays bearable.
local ROOM = 8 * 1024 * 1024

local function hand_out(lease, msg, attempt, ends)
  local payload = payload_of(msg.member)
  out[#out + 1] = int(struct.unpack('>I7', lease))
  out[#out + 1] = msg.key
  out[#out + 1] = payload
  out[#out + 1] = int(msg.due)
  out[#out + 1] = int(msg.origin)
  out[#out + 1] = attempt
  out[#out + 1] = int(ends)
end

local function claimed_before()
  local since = math.floor(till - AGE / 1000) - 1
  for _, lease in ipairs(redis.call('ZRANGEBYSCORE', LEASES, int(since), int(till))) do
    local msg = held(lease)
    if msg and msg.claim == claim and in_force(lease) then
      hand_out(lease, msg, msg.attempts, msg.ends)
    end
  end
  return #out > 2
end

-- Whether an item of DEST comes before a member of TIMES.
local function before(item, m, due)
  if not item.due or not m or item.due ~= due then
    return not item.due or not m or item.due < due
  end
  return compare(item.member, m, 17) < 0
end

-- Chooses what is due, in order, and takes it out of DEST, HANDED and INDEX.
local function choose(due, items)
  local chosen, at, handed = {}, 1, 0
  while #chosen < limit and ROOM > 0 and (#chosen == 0 or not spent()) do
    local m, score = due.peek()
    local item = items[at]
    if item and before(item, m, score) then
      at = at + 1
      redis.call('LPOP', DEST)
      if item.place then
        redis.call('LTRIM', HANDED, item.place - handed, -1)
        handed = item.place
      end
      if item.unreadable then
        quarantine('D', item.payload, NOW)
      else
        chosen[#chosen + 1] = item
        ROOM = ROOM - #item.payload
      end
    elseif m then
      due.pop(m)
      chosen[#chosen + 1] = {member = m, due = score}
      ROOM = ROOM - #m
    else
      break
    end
  end
  due.done()
  return chosen
end

-- What came from DEST and is unknown gets an id of its own, in the form that all versions read.
local function identify(chosen, number_before)
  local keys = {}
  for i, c in ipairs(chosen) do
    if not c.member then
      c.member, c.due = new_member(number_before + i, c.payload, 'Both'), NOW
    end
    keys[i] = key_of(c.member)
  end
  local states = redis.call('HMGET', STATES, unpack(keys))
  for i, c in ipairs(chosen) do
    chosen[i] = message(c.member, c.due, states[i])
  end
end

local function lease_all(chosen)
  local n = reserve(2 * #chosen)
  identify(chosen, n)
  local leases, holds, states, rescues, aliases = {}, {}, {}, {}, {}
  for i, msg in ipairs(chosen) do
    local lease = number(n + #chosen + i)
    leases[2 * i - 1], leases[2 * i] = int(till), lease
    holds[2 * i - 1], holds[2 * i] = lease, hold(msg, till, claim)
    states[2 * i - 1], states[2 * i] = msg.key, 'L' .. lease
    rescues[2 * i - 1], rescues[2 * i] = int(till + GRACE), rescue(lease, payload_of(msg.member))
    aliases[#aliases + 1] = msg.alias
    hand_out(lease, msg, msg.attempts + 1, till)
  end
  on('HDEL', STATES, aliases)
  on('ZADD', LEASES, leases)
  on('HSET', HELD, holds)
  on('HSET', STATES, states)
  if not ENVELOPE then
    on('ZADD', TIMES, rescues)
    announce(rescues[2], till + GRACE)
  end
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

local items = destination(limit) -- an error where DEST is no list comes before any write
if not (RETRY and claimed_before()) then
  expire(100)
  local chosen = choose(reader(limit), items)
  if #chosen > 0 then
    lease_all(chosen)
  else
    tidy()
  end
end
out[2] = int(next_event())
return out
