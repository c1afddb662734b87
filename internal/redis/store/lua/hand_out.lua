-- The arguments of a claim are limit, lease in us and its own name. It returns the time in us, the
-- next event in ms, the end of its leases in ms, and for each message its member, its record of
-- MSG, and its due time in ms; as a text, followed by a blank and how often it came back untouched,
-- if it did.
local limit, till, claim = tonumber(ARGV[FIRST]), after(tonumber(ARGV[FIRST + 1])), ARGV[FIRST + 2]
local out = {NOW_US, -1, till}

-- A claim stops at so many bytes of content, that a reply of large messages stays bearable.
local ROOM = 8 * 1024 * 1024

-- The arguments of ZADD and HSET for the messages to be leased.
local ends, holds, till_text = {}, {}, int(till)

-- The entries of HELD by due time: in a burst there are few of them.
local hold_of, owner = {}, claim .. struct.pack('>I4', till % 4294967296)

-- The number of first entries of READY and of DUE to be removed, and the entries of HELD without a
-- message.
local ready_taken, due_taken, stray = 0, 0, {}

-- Adds a message with its entries of MSG and GENS. A member that is not the current one of its
-- message was left by a script that was stopped, or by an operator who deleted MSG.
local function hand_out(m, rec, v, due)
  local untouched = 0
  if v or returned(m) then
    local now
    now, untouched = member_now(id_of(m), rec, v)
    if now ~= m then
      return
    end
  elseif string.sub(rec, 1, 7) ~= string.sub(m, 1, 7) then
    -- A later push has a greater seq, which is not ahead of the server's clock. What has neither is
    -- unreadable, and becomes a dead letter.
    local seq = string.sub(rec, 1, 7)
    if #seq == 7 and seq > m and struct.unpack('>I7', seq) / 2 <= server_clock() then
      return
    end
  end
  local hold = hold_of[due]
  if not hold then
    hold = struct.pack('>d', due) .. owner
    hold_of[due] = hold
  end
  local n = #ends
  ends[n + 1], ends[n + 2] = till_text, m
  holds[n + 1], holds[n + 2] = m, hold
  if untouched > 0 then
    due = int(due) .. ' ' .. int(untouched)
  end
  n = #out
  out[n + 1], out[n + 2], out[n + 3] = m, rec, due
  ROOM = ROOM - #rec
  limit = ROOM > 0 and limit - 1 or 0
end

local came_back -- whether any message has; unknown until ended leases are given back

-- Reads the entries of MSG and GENS of some members from that place on, up to the next heavy one,
-- so that little is read in vain where there is no room.
local function read(ms, from)
  if came_back == nil then
    came_back = redis.call('EXISTS', GENS) == 1
  end
  local ids, i = {}, from
  repeat
    ids[#ids + 1] = id_of(ms[i])
    i = i + 1
  until i > #ms or #ids == 100 or (string.byte(ms[i], 7) or 0) % 2 == 1
  return redis.call('HMGET', MSG, unpack(ids)), came_back and redis.call('HMGET', GENS, unpack(ids)) or {}
end

-- Adds the first of some messages, as many as the claim may have. Returns how many places it looked
-- at; those without a due time or content are no messages any more.
local function hand_out_first(ms, dues)
  local n = 0
  while n < #ms and limit > 0 do
    local recs, vs = read(ms, n + 1)
    for i, rec in ipairs(recs) do
      n = n + 1
      if rec and dues[n] then
        hand_out(ms[n], rec, vs[i], dues[n])
      elseif dues[n] then
        stray[#stray + 1] = ms[n]
      end
      if limit == 0 then
        break
      end
    end
  end
  return n
end

-- Hands out messages of READY. The entry of HELD tells whether one still waits there.
local function hand_out_ready()
  while limit > 0 do
    local ms, dues = redis.call('LRANGE', READY, ready_taken, ready_taken + limit - 1), {}
    for i, v in ipairs(on('HMGET', HELD, ms) or {}) do
      dues[i] = v and moved(v) and due_in(v)
    end
    local n = hand_out_first(ms, dues)
    if n == 0 then
      return
    end
    ready_taken = ready_taken + n
    local there = {}
    for i = 1, n do
      there[#there + 1] = dues[i] and ms[i] or nil -- others wait in DUE, or are gone
    end
    on('ZREM', DUE, there) -- there only if a mover was stopped half-way
  end
end

-- Leases the messages handed out, and then removes them from where they waited. LEASES comes first:
-- an entry without one of HELD is no lease while the message waits. Returns an error, or nil.
local function lease_all()
  -- These remove nothing: they prove that the last commands are allowed. Then a server that is out
  -- of memory lets additions pass.
  if ready_taken > 0 then
    redis.call('LTRIM', READY, 0, -1)
  end
  if due_taken > 0 then
    redis.call('ZREMRANGEBYRANK', DUE, 1, 0)
  end
  on('ZADD', LEASES, ends)
  if #holds > 0 then
    local reply = redis.pcall('HSET', HELD, unpack(holds))
    if type(reply) == 'table' and reply.err then
      for i = 2, #ends, 2 do
        redis.pcall('ZREM', LEASES, ends[i])
      end
      return redis.error_reply(reply.err .. ' (HSET)')
    end
  end
  on('HDEL', HELD, stray)
  if ready_taken > 0 then
    redis.call('LTRIM', READY, ready_taken, -1)
  end
  if due_taken > 0 then
    redis.call('ZREMRANGEBYRANK', DUE, 0, due_taken - 1)
  end
end

-- Adds the messages that a claim of this name has leased already, in the order of the queue.
-- Returns whether there were any.
local function claimed_before()
  local all, mine = redis.call('HGETALL', HELD), {}
  for i = 1, #all, 2 do
    local m, v = all[i], all[i + 1]
    local name = string.sub(v, 9, -5)
    if (name == claim or name == '?' .. claim) and in_force(m, v) and redis.call('ZSCORE', LEASES, m) then
      mine[#mine + 1] = {m = m, due = due_in(v), seq = struct.unpack('>I7', m)}
      redis.call('ZREM', DUE, m) -- there only if the first try was stopped half-way
    end
  end
  table.sort(mine, function(a, b)
    return a.due < b.due or a.due == b.due and a.seq < b.seq
  end)
  if #mine == 0 then
    return false
  end
  ROOM, limit = math.huge, math.huge
  for _, h in ipairs(mine) do
    local rec = redis.call('HGET', MSG, id_of(h.m))
    if rec then
      hand_out(h.m, rec, redis.call('HGET', GENS, id_of(h.m)), h.due)
    end
    out[3] = tonumber(redis.call('ZSCORE', LEASES, h.m))
  end
  return true
end
