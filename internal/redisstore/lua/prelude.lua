-- Common to all scripts: what the keys are called, the clock, and the moves between them.
--
-- A member is seq (7 bytes) | gen (4 bytes) | packed id. seq is the push order. gen counts how
-- often the message came back or was moved, so that no lease has the member of an earlier one, and who
-- saw it due before sees another member since: a member in LEASES is the lease's token.
local DUE, MSG, LEASES, HELD, GENS, DEAD, GRAVES, SEQ, READY, UNIQUE =
  KEYS[1], KEYS[2], KEYS[3], KEYS[4], KEYS[5], KEYS[6], KEYS[7], KEYS[8], KEYS[9], KEYS[10]
local GIVEN_NOW, CHANNEL, TRIGGER = ARGV[1], ARGV[3], ARGV[4]

-- How many us ago the first try may have run whose reply was lost; 0 in a first try.
local AGE = tonumber(ARGV[2])
local RETRY = AGE > 0
local FIRST = 5 -- the first argument of the script's own

-- The server's clock in microseconds, unless one is given.
local function clock()
  if GIVEN_NOW ~= '' then
    return tonumber(GIVEN_NOW)
  end
  local t = redis.call('TIME')
  return tonumber(t[1]) * 1000000 + tonumber(t[2])
end

local NOW_US = clock()
local NOW = math.floor(NOW_US / 1000)

-- The first whole millisecond at which so many microseconds have passed. What is due at once is due in
-- this one.
local function after(us)
  if us == 0 then
    return NOW
  end
  return math.ceil((NOW_US + us) / 1000)
end

-- Due by a due time in milliseconds where there is one, else by a delay in microseconds.
local function due_of(due, delay)
  if due ~= '' then
    return tonumber(due)
  end
  return after(tonumber(delay))
end

-- tostring would write 1.7e+15.
local function int(n)
  return string.format('%.0f', n)
end

local function member(seq, gen, id)
  return seq .. struct.pack('>I4', gen) .. id
end

local function id_of(m)
  return string.sub(m, 12)
end

-- MSG has for each id its seq and then headers and body.
local function seq_of(rec)
  return string.sub(rec, 1, 7)
end

local function content_of(rec)
  return string.sub(rec, 8)
end

-- GENS has an entry for each message that came back: gen, and how often it came back untouched.
local function gens(id)
  local v = redis.call('HGET', GENS, id)
  if not v then
    return 0, 0
  end
  local gen, untouched = struct.unpack('>I4I4', v)
  return gen, untouched
end

-- The member that a message of this id has now, or nil.
local function current(id)
  local rec = redis.call('HGET', MSG, id)
  if not rec then
    return nil
  end
  local gen = gens(id)
  return member(seq_of(rec), gen, id)
end

-- A trigger is a key that expires when a message is due, for who listens to expiries. Without such
-- listeners TRIGGER is empty; else it is what the key begins with.
local function triggers(due)
  return TRIGGER ~= '' and due > NOW
end

local function set_trigger(id, due)
  if triggers(due) then
    redis.call('SET', TRIGGER .. id, '', 'PX', int(due - NOW))
  end
end

local function drop_trigger(id)
  if TRIGGER ~= '' then
    redis.call('DEL', TRIGGER .. id)
  end
end

-- Tells sleepers of a message that is now the first: when it is due, and whether a trigger will tell then.
local function announce(m, due)
  if redis.call('ZRANGE', DUE, 0, 0)[1] == m then
    redis.call('PUBLISH', CHANNEL, int(due) .. (triggers(due) and ' trigger' or ''))
  end
end

-- Puts a message that was handed out back, under its next member. The caller has taken the
-- old one out, so that a server that is out of memory lets this write pass.
local function put_back(m, due, untouched)
  local id = id_of(m)
  local gen, spared = gens(id)
  gen = gen + 1
  if untouched then
    spared = spared + 1
  end
  redis.call('HSET', GENS, id, struct.pack('>I4I4', gen, spared))
  local back = member(seq_of(m), gen, id)
  redis.call('ZADD', DUE, int(due), back)
  return back
end

-- HELD has the due time and the claim of each lease.
local function held_due(m)
  local v = redis.call('HGET', HELD, m)
  if not v then
    return nil
  end
  return (struct.unpack('>d', v))
end

-- Ends a lease; returns the message's due time, or nil where there was no such lease. A lease left
-- by a claim that lost (see arbitrate) belongs to no message any more, and only goes away.
local function end_lease(m)
  if redis.call('ZREM', LEASES, m) == 0 then
    return nil
  end
  local due = held_due(m)
  redis.call('HDEL', HELD, m)
  if current(id_of(m)) ~= m then
    return nil
  end
  return due or NOW
end

-- Gives back what up to limit ended leases held.
local function expire(limit)
  local ended = redis.call('ZRANGEBYSCORE', LEASES, '-inf', NOW, 'LIMIT', 0, limit)
  for _, m in ipairs(ended) do
    local due = end_lease(m)
    if due then
      put_back(m, due, false)
    end
  end
end

-- Whether a lease is in force.
local function holds(m)
  local till = redis.call('ZSCORE', LEASES, m)
  return till and tonumber(till) > NOW and current(id_of(m)) == m
end

-- Forgets a message that is in no list and no set any more.
local function forget(id)
  redis.call('HDEL', MSG, id)
  redis.call('HDEL', GENS, id)
  drop_trigger(id)
  if redis.call('EXISTS', MSG) == 0 then
    redis.call('DEL', SEQ)
  end
end

-- Takes a message that waits out of where it waits. Returns its member, or nil and the reason:
-- NONE or HELD.
local function take_waiting(id)
  local m = current(id)
  if not m then
    return nil, 'NONE'
  end
  if redis.call('ZSCORE', LEASES, m) then
    if holds(m) then
      return nil, 'HELD'
    end
    local back = put_back(m, end_lease(m) or NOW, false) -- the ended lease counts as an attempt
    redis.call('ZREM', DUE, back)
    return back
  end
  if redis.call('ZREM', DUE, m) == 1 then
    return m
  end
  if redis.call('LREM', READY, 1, m) == 1 then
    redis.call('HDEL', HELD, m)
    return m
  end
  return nil, 'NONE'
end

-- SEQ goes away with the last message. It begins at the server's microseconds, given clock or not, so
-- that no member of a later message is that of an earlier one of its id.
local function count()
  if redis.call('EXISTS', SEQ) == 0 then
    local t = redis.call('TIME')
    redis.call('SET', SEQ, int(tonumber(t[1]) * 1000000 + tonumber(t[2])))
  end
  return redis.call('INCR', SEQ)
end

-- Adds a delivery to out: member, content, due, attempt, end of the lease.
local function hand_out(out, m, due, till)
  local id = id_of(m)
  local gen, untouched = gens(id)
  out[#out + 1] = m
  out[#out + 1] = content_of(redis.call('HGET', MSG, id))
  out[#out + 1] = int(due)
  out[#out + 1] = gen + 1 - untouched
  out[#out + 1] = int(till)
end

-- A claim stops at so many bytes of content, that a reply of large messages stays bearable.
local ROOM = 8 * 1024 * 1024

-- Leases a message that the caller has taken from where it waited. False when the reply is full.
local function lease(out, m, due, till, claim)
  redis.call('ZADD', LEASES, int(till), m)
  redis.call('HSET', HELD, m, struct.pack('>d', due) .. claim)
  hand_out(out, m, due, till)
  ROOM = ROOM - #out[#out - 3]
  return ROOM > 0
end

-- Leases up to limit messages that were moved to READY; returns how many it still may. An entry that is
-- no message's member any more only goes away.
local function lease_ready(out, limit, till, claim)
  while limit > 0 do
    local m = redis.call('LPOP', READY)
    if not m then
      break
    end
    local due = held_due(m)
    if due and current(id_of(m)) == m then
      limit = lease(out, m, due, till, claim) and limit - 1 or 0
    end
  end
  return limit
end

-- Adds what a claim of this name has leased already; whether there was any.
local function claimed_before(out, claim)
  local all = redis.call('HGETALL', HELD)
  local found = false
  for i = 1, #all, 2 do
    if string.sub(all[i + 1], 9) == claim and holds(all[i]) then
      hand_out(out, all[i], held_due(all[i]), tonumber(redis.call('ZSCORE', LEASES, all[i])))
      found = true
    end
  end
  return found
end

local function next_seq()
  return struct.pack('>I7', count())
end

-- Milliseconds at which something happens next, or -1.
local function next_event()
  local head = redis.call('ZRANGE', DUE, 0, 0, 'WITHSCORES')[2]
  local till = redis.call('ZRANGE', LEASES, 0, 0, 'WITHSCORES')[2]
  if not head and not till then
    return -1
  end
  return math.min(tonumber(head or till), tonumber(till or head))
end
