-- Leases up to limit messages that are due: limit, lease in us, the claim's own name of 8 bytes.
-- Returns the time in us, the next event in ms, and for each message its entry of HELD. A repeated
-- claim returns the messages that its first try leased. Items of DEST are taken too: they may have
-- come from Java. While the queue is paused it leases none, and what is due is no event before the end
-- of the pause. Then it returns PAUSED in place of messages, where these are to be handed over to
-- Java.
local limit, till, claim = tonumber(ARGV[FIRST]), after(tonumber(ARGV[FIRST + 1])), ARGV[FIRST + 2]
local out = {NOW_US, -1}

-- A claim stops at so many bytes of payload, where the server's clock does not tell the time that
-- they take.
local ROOM = 256 * 1024

local function claimed_before()
  local since = math.floor(till - AGE / 1000) - 1
  local mine = {}
  for _, key in ipairs(redis.call('ZRANGEBYSCORE', LEASES, int(since), int(till))) do
    local v = redis.call('HGET', HELD, key)
    if v and claim_of(v) == claim and in_force(key) then
      local msg = held(key, v)
      mine[#mine + 1] = {v = v, due = msg.due, member = msg.member}
    end
  end
  table.sort(mine, function(a, b)
    return a.due < b.due or a.due == b.due and compare(a.member, b.member, 17) < 0
  end)
  for i, h in ipairs(mine) do
    out[i + 2] = h.v
  end
  return #mine > 0
end

-- Chooses due messages, in order. Where the time is up, an item of DEST may not be the next one.
local function choose(due, there)
  local chosen, bytes = {}, 0
  while #chosen < limit and ROOM > 0 and (#chosen == 0 or not spent(bytes)) do
    local msg, item = due.peek(), there.peek()
    if not msg and due.stopped() then
      break
    elseif item and before(item, msg) then
      there.pop()
      if item.readable then
        chosen[#chosen + 1] = item.msg or item
        bytes = #item.payload
      else
        quarantine('D', item.payload, NOW)
      end
    elseif msg then
      if due.pop() then
        chosen[#chosen + 1] = msg
        bytes = #msg.member
      end
    else
      break
    end
    ROOM = ROOM - bytes
  end
  return chosen
end

local states_there -- whether any message has an entry of STATES

-- Adds to messages their entries of STATES. Returns the keys that have one.
local function recall_all(msgs)
  local keys, known = {}, {}
  if not states_there then
    return known
  end
  for i, msg in ipairs(msgs) do
    keys[i] = msg.key
  end
  for i, state in ipairs(redis.call('HMGET', STATES, unpack(keys))) do
    if state then
      recall(msgs[i], state)
      known[#known + 1] = msgs[i].key
    end
  end
  return known
end

-- An unknown item of DEST gets an id of its own, in the form that all versions read.
local function identify(chosen, last)
  for i, c in ipairs(chosen) do
    if not c.member then
      chosen[i] = parse(new_member(last + i, c.payload, 'Both'), NOW)
    end
  end
  return recall_all(chosen)
end

-- Java's ids are random. A message with the id of a leased one gets an id of its own. Returns the
-- members that were in TIMES.
local function part_duplicates(msgs, last)
  local keys, seen, parted = {}, {}, {}
  for i, msg in ipairs(msgs) do
    keys[i] = msg.key
  end
  for i, v in ipairs(redis.call('HMGET', HELD, unpack(keys))) do
    local msg = msgs[i]
    if v or seen[msg.key] then
      parted[#parted + 1] = msg.in_times and msg.member or nil
      msgs[i] = parse(new_member(last + i, payload_of(msg), 'Both'), msg.due)
    end
    seen[msg.key] = true
  end
  return parted
end

local function lease_keys(msgs)
  local ends, args, keys = int(till), {}, {}
  for i, msg in ipairs(msgs) do
    args[2 * i - 1], args[2 * i], keys[i] = ends, msg.key, msg.key
  end
  write({'ZREM', LEASES, unpack(keys)}, 'ZADD', LEASES, unpack(args))
end

local function hold_all(msgs, mark)
  local holds, keys = {}, {}
  for i, msg in ipairs(msgs) do
    local v = hold(msg, mark)
    holds[2 * i - 1], holds[2 * i], keys[i] = msg.key, v, msg.key
    out[i + 2] = v
  end
  write({'HDEL', HELD, unpack(keys)}, 'HSET', HELD, unpack(holds))
end

-- Makes members the stand-ins of leases.
local function stand_in(msgs)
  local due_again = int(till + GRACE)
  local times, moved, added = {}, {'ZADD', TIMES}, {'ZREM', TIMES}
  for i, msg in ipairs(msgs) do
    times[2 * i - 1], times[2 * i] = due_again, msg.member
    if msg.in_times then
      moved[#moved + 1], moved[#moved + 2] = int(msg.due), msg.member
    else
      added[#added + 1] = msg.member
    end
  end
  undo[#undo + 1] = #moved > 2 and moved or nil
  write(#added > 2 and added or nil, 'ZADD', TIMES, unpack(times))
end

-- Leases messages, and then takes them out of where they waited.
local function lease_all(msgs, due, there)
  prove()
  local last = reserve(2 * #msgs + 1)
  local known = identify(msgs, last)
  local parted = part_duplicates(msgs, last + #msgs)
  lease_keys(msgs)
  hold_all(msgs, stamp(last + 2 * #msgs + 1, till) .. claim)
  if not ENVELOPE then
    stand_in(msgs)
  end
  there.done()
  due.done(parted)
  there.forget()
  on('HDEL', STATES, known)
end

-- When the first of a sorted set is due or ends, or nil.
local function first_of(key)
  return tonumber(redis.call('ZRANGE', key, 0, 0, 'WITHSCORES')[2])
end

local there = taker(redis.call('LLEN', DEST)) -- where it is no list, the error comes before any write
local ends = first_of(LEASES) -- before any write too
local leased_before = RETRY and claimed_before()
if not leased_before and ends and ends <= NOW then
  expire()
  if more_ended then -- their messages may be due before all others
    out[2] = NOW
    return out
  end
  ends = first_of(LEASES)
end
local head
if not leased_before then
  local kept = redis.call('EXISTS', PAUSED, STATES, STATES) -- STATES counts twice
  states_there = kept > 1
  local paused, resumes = false, nil
  if kept % 2 == 1 then
    paused, resumes = pause_state()
  end
  if paused then
    out[2] = math.min(resumes or ends or -1, ends or resumes or -1)
    out[3] = not ENVELOPE and 'PAUSED' or nil
    return out
  end
  local due = reader(not ENVELOPE)
  local chosen = choose(due, there)
  if #chosen > 0 then
    lease_all(chosen, due, there)
    head = not ENVELOPE and announce_time(till + GRACE)
    ends = math.min(ends or till, till)
  else
    there.done()
    due.done()
    forget_some()
    tidy()
  end
end
head = head or first_of(TIMES)
if there.left() > 0 then
  out[2] = NOW
elseif head or ends then
  out[2] = math.min(head or ends, ends or head)
end
return out
