-- Common to all scripts of redisson: the names of the keys, and the moves between them.
--
-- DEST, TIMES and INDEX are Redisson's own: due messages, waiting messages with their due times in
-- ms, and waiting messages in the order of offers. A member of TIMES and INDEX is id | length |
-- payload. The other keys are this package's:
--
--   LEASES      keys of leased messages, by the lease's end in ms
--   HELD        for each of these what is leased
--   STATES      for the key of one that waits or is dead: where it is, when TIMES alone does not tell
--   DEAD        keys of dead letters, by order of death; GRAVES has what they were
--   HANDED      which messages were moved to DEST, in its order, and PAYLOADS what each of them has there
--   QUARANTINE  unreadable entries, by due time
--   SEQ         the last number given out
--
-- A message's key is its id, with the length byte where there is one; in an envelope, the id that
-- the envelope has. Its origin is the due time that it was pushed with: the two name it for good.
local DEST, TIMES, INDEX, LEASES, HELD, STATES, DEAD, GRAVES, SEQ, HANDED, PAYLOADS, QUARANTINE =
  KEYS[1], KEYS[2], KEYS[3], KEYS[4], KEYS[5], KEYS[6], KEYS[7], KEYS[8], KEYS[9], KEYS[10], KEYS[11], KEYS[12]
local CHANNEL = ARGV[3]
local ENVELOPE = string.find(ARGV[4], 'e', 1, true) ~= nil
local LISTED = string.find(ARGV[4], 'l', 1, true) ~= nil -- in INDEX too
local FORMAT = ARGV[5] -- of members: 'V1', 'V2' or 'Both'
local FIRST = 7 -- the first argument of the script's own

-- The commands that undo the writes of a step. A step is the part of a script for one message, or
-- for all together. It adds first and removes last. Where a command fails, such as for a user
-- without the right to it, the queue is as it was before the step.
local undo = {}
local server = redis

local function take_back()
  local inverses = undo
  undo = {}
  for i = #inverses, 1, -1 do
    server.pcall(unpack(inverses[i]))
  end
end

-- Ends a step: nothing of it is undone any more.
local function commit()
  undo = {}
end

-- Calls a command. An error ends the script, after the step is undone.
local function call(command, ...)
  local reply = server.pcall(command, ...)
  if type(reply) == 'table' and reply.err then
    take_back()
  end
  return named(command, reply)
end

local redis = {call = call, pcall = server.pcall, sha1hex = server.sha1hex, error_reply = server.error_reply}

-- Runs a command that the inverse undoes.
local function write(inverse, ...)
  local reply = call(...)
  undo[#undo + 1] = inverse
  return reply
end

-- A script that moves messages stops after so many microseconds or so many entries of INDEX walked
-- over, which is as long. Both stay below a time that a client notices.
local BUDGET, WALK = 600, 40000
local walked = 0

-- Since Redis 7.2 TIME stands still while a script runs. Versions since then have os.clock, all but
-- the first of them.
local began = redis.call('TIME')
local cpu = rawget(_G, 'os') and os.clock
local cpu_began = cpu and cpu()

local function elapsed()
  if cpu then
    return (cpu() - cpu_began) * 1000000
  end
  local t = redis.call('TIME')
  return (tonumber(t[1]) - tonumber(began[1])) * 1000000 + tonumber(t[2]) - tonumber(began[2])
end

-- Whether the script has had its time, or a part of it. bytes is the size of the messages moved
-- since the last call: the clock is asked after a few small messages, and after each large one.
local asked, took = 0, 0

local function spent(bytes, budget)
  asked = asked + 1 + (bytes or 0) / 1024
  if asked >= 8 then
    asked, took = 0, elapsed()
  end
  return walked > WALK or took > (budget or BUDGET)
end

-- Whether a script that settles messages stops before the next one: it is run again for those
-- without an outcome. Their number is limited, so that this is for large ones. Their bytes are
-- limited where the server's clock does not tell the time that they take.
local SETTLE_BUDGET, SETTLE_ROOM = 1200, 8 * 1024 * 1024

local function stops(outcomes, bytes)
  SETTLE_ROOM = SETTLE_ROOM - bytes
  return #outcomes > 0 and (SETTLE_ROOM <= 0 or spent(bytes, SETTLE_BUDGET))
end

-- These remove nothing: they prove that a step may undo its additions and remove old entries. Then
-- a server that is out of memory lets additions pass.
local proven = false

local function prove()
  if not proven then
    redis.call('HDEL', HELD, '')
    redis.call('ZREM', LEASES, '')
    redis.call('LTRIM', INDEX, 0, -1)
    proven = true
  end
end

-- Writing a number as text is slow, and a script has few different ones.
local texts, write_int = {}, int

local function int(n)
  local text = texts[n] or write_int(n)
  texts[n] = text
  return text
end

-- Calls a command on some values, if there are any.
local function on(command, key, values)
  if #values > 0 then
    return redis.call(command, key, unpack(values))
  end
end

-- Reserves n numbers and returns the one before the first. SEQ goes away with the last message. It
-- begins at the server's microseconds, given clock or not, so that no number comes twice.
local function reserve(n)
  local last = redis.call('INCRBY', SEQ, n)
  if last == n then
    local t = redis.call('TIME')
    last = tonumber(t[1]) * 1000000 + tonumber(t[2]) + n
    redis.call('SET', SEQ, int(last))
  end
  return last - n
end

local function number(n)
  return struct.pack('>I7', n)
end

-- Makes a member whose id is a number: members of one due time sort as they were pushed. With 07
-- before the number both kinds of reader find the same payload: one takes 8 bytes for the id, the
-- other 1 and 7.
local function new_member(n, payload, format)
  local before = format == 'V2' and '\8\0' or format == 'V1' and '\0' or '\7'
  return before .. number(n) .. struct.pack('<I8', #payload) .. payload
end

-- How many bytes a member has before its payload, and how many of these are its id; nil for a
-- member that no version of Redisson can read.
local function header(m)
  local n, first = #m, string.byte(m, 1)
  if n >= 17 and first == 8 and struct.unpack('<I8', m, 10) == n - 17 then
    return 17, 9
  end
  if n >= 16 and struct.unpack('<I8', m, 9) == n - 16 then
    return 16, 8
  end
  if n >= 10 and first > 0 and n >= first + 9 and struct.unpack('<I8', m, first + 2) == n - first - 9 then
    return first + 9, first + 1
  end
  return nil
end

local function format_of(m)
  local _, n = header(m)
  if not n then
    return nil
  end
  if n ~= 8 then
    return 'V2'
  end
  return string.byte(m, 1) == 7 and 'Both' or 'V1'
end

-- Numbers of ours are microseconds of the last ten years: they begin at the server's clock, and
-- hardly run ahead of it.
local MOST = tonumber(began[1]) * 1000000 + 86400 * 1000000
local LEAST = MOST - 10 * 366 * 86400 * 1000000

-- Whether a member, or its prefix, seems to be one of ours, and its number then. Java's ids are
-- random: one of some 60,000 looks like it.
local function ours(m)
  local a, b = string.byte(m, 1, 2)
  local at = a == 8 and 3 or 2
  if #m < at + 6 or a ~= 0 and a ~= 7 and (a ~= 8 or b ~= 0) then
    return nil
  end
  local n = struct.unpack('>I7', m, at)
  return n > LEAST and n < MOST and n or nil
end

-- Whether a message comes before another, by due times and members or prefixes. Those of one due
-- time that we have pushed go by their numbers. For Java's nothing tells: which was offered first
-- is for INDEX to say, and for DEST.
local function sorts_before(due, m, other_due, other)
  if due ~= other_due then
    return due < other_due
  end
  local n, k = ours(m), ours(other)
  return n and k and n < k or false
end

-- The first key that holds something that the queue does not keep there, as its place in KEYS and
-- what it holds; nil for none.
local TYPES = {'list', 'zset', 'list', 'zset', 'hash', 'hash', 'zset', 'hash', 'string', 'list', 'hash', 'zset'}

local function wrong_type()
  for i, wanted in ipairs(TYPES) do
    local found = redis.call('TYPE', KEYS[i]).ok
    if found ~= wanted and found ~= 'none' then
      return i .. ' ' .. found
    end
  end
end

-- An envelope is MAGIC | packed id | content.
local MAGIC = '\221dq\1'

-- The packed id of an envelope that begins after so many bytes; nil for other bytes.
local function enveloped(s, from)
  local n = string.byte(s, from + 5)
  if not n or string.sub(s, from + 1, from + 4) ~= MAGIC then
    return nil
  end
  local last = from + 5 + (n == 0 and 16 or n)
  return #s >= last and string.sub(s, from + 5, last) or nil
end

-- A message is a table: member, of which the first n bytes are its prefix, the id with the length
-- byte where there is one; key, due, origin, attempts. parse makes one of a member, nil for an
-- unreadable one.
local function parse(m, due)
  local h, n = header(m)
  local key = h and (ENVELOPE and enveloped(m, h) or not ENVELOPE and string.sub(m, 1, n))
  return key and {member = m, n = n, key = key, due = due, origin = due, attempts = 0} or nil
end

local function prefix_of(msg)
  return string.sub(msg.member, 1, msg.n)
end

local function payload_of(msg)
  return string.sub(msg.member, msg.n + 9)
end

-- STATES has for a key
--   W | due, origin, attempts | prefix   it waits, in TIMES or HANDED under that prefix
--   D                                    it is dead
--   A | key                              it is the prefix of that message, which waits or is leased
-- A message shared with Java that nothing has happened to yet has no entry.
local function waiting(due, origin, attempts, prefix)
  return 'W' .. struct.pack('>ddI4', due, origin, attempts) .. prefix
end

-- Adds to a message its entry of STATES.
local function recall(msg, state)
  if state and string.sub(state, 1, 1) == 'A' then
    msg.key = string.sub(state, 2)
    state = redis.call('HGET', STATES, msg.key)
  end
  if state and string.sub(state, 1, 1) == 'W' then
    local _
    _, msg.origin, msg.attempts = struct.unpack('>ddI4', state, 2)
  end
end

-- Whether a message is under another id than the one that names it: it was redriven.
local function renamed(msg)
  return not ENVELOPE and (msg.n ~= #msg.key or prefix_of(msg) ~= msg.key)
end

-- Sets the entry of STATES of a key, or removes it where state is nil.
local function set_state(key, state)
  local was = redis.call('HGET', STATES, key)
  local inverse = was and {'HSET', STATES, key, was} or {'HDEL', STATES, key}
  if state then
    write(inverse, 'HSET', STATES, key, state)
  elseif was then
    write(inverse, 'HDEL', STATES, key)
  end
end

-- Notes where a waiting message is.
local function remember(msg, due, attempts)
  local noted = ENVELOPE or renamed(msg) or attempts > 0 or due ~= msg.origin
  set_state(msg.key, noted and waiting(due, msg.origin, attempts, prefix_of(msg)) or nil)
  if renamed(msg) then
    set_state(prefix_of(msg), 'A' .. msg.key)
  end
end

-- Sets when a member is due, whether or not it is in TIMES.
local function set_due(m, due)
  local was = redis.call('ZSCORE', TIMES, m)
  write(was and {'ZADD', TIMES, was, m} or {'ZREM', TIMES, m}, 'ZADD', TIMES, int(due), m)
end

-- Adds a message to where it is among those of its due time. The caller then removes it from where
-- it was.
local function put_back(msg, due, attempts)
  prove()
  if LISTED or not ours(msg.member) then -- Java's are always there
    write({'LTRIM', INDEX, 1, -1}, 'LPUSH', INDEX, msg.member) -- it is older than most
  end
  remember(msg, due, attempts)
  set_due(msg.member, due)
end

-- Why sleeping fetchers could not be told. The message is stored all the same.
local silence

local function publish(due)
  local reply = redis.pcall('PUBLISH', CHANNEL, int(due))
  if type(reply) == 'table' and reply.err then
    silence = 'PUBLISH: ' .. reply.err
  end
end

-- Tells sleeping fetchers, and Java's processes, of a member that is now the first.
local function announce(m, due)
  if m and redis.call('ZRANGE', TIMES, 0, 0)[1] == m then
    publish(due)
  end
end

-- The same for several members of one due time.
local function announce_time(due)
  if tonumber(redis.call('ZRANGE', TIMES, 0, 0, 'WITHSCORES')[2]) == due then
    publish(due)
  end
end

-- The reply of a script, followed by the reason why sleeping fetchers could not be told.
local function told(reply)
  return silence and {reply, silence} or reply
end

-- Where Java may take messages too, a leased one stays in TIMES, to be due a while after the lease
-- has ended: should no Go process run then, Java hands it out. It is not in INDEX, where Java looks
-- for what waits.
local GRACE = tonumber(ARGV[6])

-- HELD is stamp | claim (8 bytes) | due, origin | attempts, this hand-out counted | lengths of key
-- and prefix | key | member. The stamp, the claim's number and the first end in ms, is what tells
-- one lease of a message from the next. There is no key where the member has it.
local STAMP = 16

local function stamp(n, ends)
  return struct.pack('>I8I8', n, ends)
end

local function first_end(mark)
  return (struct.unpack('>I8', mark, 9))
end

local function claim_of(v)
  return string.sub(v, STAMP + 1, STAMP + 8)
end

local function hold(msg, mark)
  local key = renamed(msg) and msg.key or ''
  return mark .. struct.pack('>ddI4I2I2', msg.due, msg.origin, msg.attempts + 1, #key, msg.n) .. key .. msg.member
end

-- Where a member begins in an entry of HELD.
local function member_at(v)
  local a, b = string.byte(v, 45, 46)
  return 49 + a * 256 + b
end

-- The message that an entry of HELD holds.
local function held(key, v)
  local due, origin, attempts, _, n = struct.unpack('>ddI4I2I2', v, 25)
  return {member = string.sub(v, member_at(v)), n = n, key = key, due = due, origin = origin, attempts = attempts}
end

-- Removes the lease of a key, and commits. An entry of LEASES without one of HELD is no lease, so
-- HELD goes first.
local function forget_lease(key)
  redis.call('HDEL', HELD, key)
  commit()
  redis.call('ZREM', LEASES, key)
end

-- Ends the lease of a message that was put elsewhere, and commits. Without its stand-in a lease
-- holds nothing, so that goes first.
local function end_lease(msg)
  if not ENVELOPE then
    redis.call('ZREM', TIMES, msg.member)
    commit()
  end
  forget_lease(msg.key)
  if renamed(msg) then
    redis.call('HDEL', STATES, prefix_of(msg))
  end
end

-- Gives a leased message back, and commits. The stand-in becomes the member that waits.
local function give_back(msg, due, attempts)
  put_back(msg, due, attempts)
  forget_lease(msg.key)
end

-- The message under the lease of a key that has v in HELD; nil where Java has had it, and then the
-- lease is forgotten.
local function leased_message(key, v)
  local msg = v and held(key, v)
  if msg and (ENVELOPE or redis.call('ZSCORE', TIMES, msg.member)) then
    return msg
  end
  forget_lease(key)
  if msg and renamed(msg) then
    redis.call('HDEL', STATES, prefix_of(msg))
  end
end

-- Whether the lease of a key in HELD is in force. Mostly one look tells that for all.
local all_in_force

local function in_force(key)
  if all_in_force == nil then
    all_in_force = redis.call('ZCOUNT', LEASES, '-inf', int(NOW)) == 0
  end
  return all_in_force or tonumber(redis.call('ZSCORE', LEASES, key) or 0) > NOW
end

-- The entry of HELD of a lease with this key and stamp; nil where there is none or it is not in
-- force.
local function given(key, mark)
  local v = redis.call('HGET', HELD, key)
  return v and string.sub(v, 1, STAMP) == mark and in_force(key) and v or nil
end

-- The message of a lease that is in force, or nil.
local function message_of(key, mark)
  local v = given(key, mark)
  return v and leased_message(key, v)
end

-- Gives back the messages of ended leases, for a part of the script's time, and remembers whether
-- there may be more.
local more_ended = false
local EXPIRED = 100

local function expire()
  local keys = redis.call('ZRANGEBYSCORE', LEASES, '-inf', int(NOW), 'LIMIT', 0, EXPIRED)
  local bytes = 0
  for i, key in ipairs(keys) do
    if i > 1 and spent(bytes, BUDGET / 2) then
      more_ended = true
      return
    end
    local v = redis.call('HGET', HELD, key)
    local msg = leased_message(key, v)
    if msg then
      give_back(msg, msg.due, msg.attempts)
    end
    bytes = v and 4 * #v or 0
  end
  more_ended = #keys == EXPIRED
end

-- Whether a member of TIMES is there for a lease.
local function leased(m)
  local _, n = header(m)
  if ENVELOPE or not n then
    return false
  end
  local key = string.sub(m, 1, n)
  if redis.call('HEXISTS', HELD, key) == 1 then
    return true
  end
  local state = redis.call('HGET', STATES, key)
  return state and string.sub(state, 1, 1) == 'A' and redis.call('HEXISTS', HELD, string.sub(state, 2)) == 1
end

-- Puts an unreadable entry aside: kind T from TIMES alone, I from TIMES and INDEX, D from DEST.
local function quarantine(kind, what, due)
  prove()
  write({'ZREM', QUARANTINE, kind .. what}, 'ZADD', QUARANTINE, int(due), kind .. what)
end

-- Deletes the keys of this package when there are no messages.
local function tidy()
  if redis.call('EXISTS', TIMES, LEASES, DEAD, QUARANTINE, DEST) == 0 then
    redis.call('DEL', SEQ, STATES, HANDED, PAYLOADS, INDEX, HELD, GRAVES)
  end
end

-- The outcome of settling a lease that is not in force: 0 lost, or for a repeated script 1, the
-- first try has done it, since the lease could not have ended by itself, or 2, unknown.
local function lost(mark)
  if not RETRY then
    return 0
  end
  return NOW < first_end(mark) and 1 or 2
end
