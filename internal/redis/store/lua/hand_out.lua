-- The arguments of a claim are limit, lease in us and its own name. It returns the time in us, the
-- next event in ms, the end of its leases in ms, and for each message its member, its record of
-- MSG, and its due time in ms; as a text, followed by a blank and how often it came back untouched,
-- if it did.
local limit, till, claim = tonumber(ARGV[FIRST]), after(tonumber(ARGV[FIRST + 1])), ARGV[FIRST + 2]
local out = {NOW_US, -1, till}

-- A claim stops at so many bytes of content, that a reply of large messages stays bearable.
local ROOM = tonumber(ARGV[FIRST + 4] or 8 * 1024 * 1024)

-- The arguments of ZADD and HSET for the messages to be leased.
local ends, holds, till_text = {}, {}, int(till)

-- How many entries out and ends have: counting costs less than asking.
local said, leased = 3, 0

-- What each entry of HELD ends with.
local owner = claim .. struct.pack('>I4', till % 4294967296)

-- The number of first entries of READY and of DUE to be removed, and the entries of HELD without a
-- message.
local ready_taken, due_taken, stray = 0, 0, {}

local came_back -- whether any message has; unknown until ended leases are given back

local sub, byte = string.sub, string.byte

-- Reads the entries of MSG and GENS of some members from that place on, up to the next heavy one,
-- so that little is read in vain where there is no room. Returns which of the members came back, too.
local function read(ms, from)
  if came_back == nil then
    came_back = redis.call('EXISTS', GENS) == 1
  end
  local ids, again, n, m = {}, {}, 0, ms[from]
  local last, a, b, c, d = byte(m, 7, 11) -- of seq, and gen
  repeat
    n = n + 1
    ids[n] = sub(m, 12)
    if d ~= 0 or c ~= 0 or b ~= 0 or a ~= 0 then
      again[n] = true
    end
    m = ms[from + n]
    if m then
      last, a, b, c, d = byte(m, 7, 11)
    end
  until not m or n == 100 or (last or 0) % 2 == 1
  return redis.call('HMGET', MSG, unpack(ids)), came_back and redis.call('HMGET', GENS, unpack(ids)) or {}, again
end

-- How often a message came back untouched, by its entries of MSG and GENS. Returns nil where the member
-- is not the current one of its message: a script that was stopped has left it, or an operator who
-- deleted MSG.
local function untouched_of(m, rec, v)
  if v or returned(m) then
    local now, untouched = member_now(id_of(m), rec, v)
    return now == m and untouched or nil
  end
  -- A later push has a greater seq, which is not ahead of the server's clock. What has neither is
  -- unreadable, and becomes a dead letter.
  local seq = seq_of(rec)
  local n = #seq == 7 and struct.unpack('>I7', seq)
  local pushed_later = n and n > struct.unpack('>I7', m .. '\0\0\0\0\0\0\0') and n / 2 <= server_clock()
  return not pushed_later and 0 or nil
end

-- Adds the first of some messages, as many as the claim may have. They are due at the times of dues, or all
-- at one. Returns how many places it looked at; those without a due time or content are no messages any
-- more. It has no functions of its own, and uses locals, since each message takes its time.
local function hand_out_first(ms, dues, all_due)
  local n, rest, room, so_far, entries = 0, limit, ROOM, said, leased
  local ends, holds, out, till_text = ends, holds, out, till_text
  local hold, hold_due
  while n < #ms and rest > 0 do
    local recs, vs, again = read(ms, n + 1)
    for i = 1, #recs do
      n = n + 1
      local m, rec, due, untouched = ms[n], recs[i], all_due or dues[n], 0
      if not rec then
        stray[#stray + 1] = due and m or nil
        due = nil
      elseif due and (vs[i] or again[i] or sub(rec, 1, 7) ~= sub(m, 1, 7)) then
        untouched = untouched_of(m, rec, vs[i])
        due = untouched and due
      end
      if due then
        if due ~= hold_due then -- in a burst few are
          hold, hold_due = struct.pack('>d', due) .. owner, due
        end
        ends[entries + 1], ends[entries + 2] = till_text, m
        holds[entries + 1], holds[entries + 2] = m, hold
        entries = entries + 2
        if untouched > 0 then
          due = int(due) .. ' ' .. int(untouched)
        end
        out[so_far + 1], out[so_far + 2], out[so_far + 3] = m, rec, due
        so_far = so_far + 3
        room = room - #rec
        rest = room > 0 and rest - 1 or 0
        if rest == 0 then
          break
        end
      end
    end
  end
  limit, ROOM, said, leased = rest, room, so_far, entries
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

-- Redis keeps a hash of up to so many entries, and a sorted set of fewer, as a list that it searches from
-- one end, unless an entry is long. That takes some microseconds for each of hundreds of leases. So a claim
-- of many adds a long entry for a moment.
local MANY, LIST, LONG = 64, 512, string.rep('-', 65)

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
  local list = leased > 2 * MANY and redis.call('HLEN', HELD) <= LIST
  if list then
    redis.call('ZREM', LEASES, '')
  end
  if list or #stray > 0 then
    redis.call('HDEL', HELD, '')
  end
  if list then
    on('ZADD', LEASES, {till_text, LONG})
    holds[leased + 1], holds[leased + 2] = '', LONG
    stray[#stray + 1] = ''
  end
  on('ZADD', LEASES, ends)
  if list then
    on('ZREM', LEASES, {LONG})
  end
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
-- Returns whether there were any. It reads those leases alone that end as one of its tries can have had
-- them end: a queue may have very many others. A given clock may jump between two tries, and that of a
-- replica may differ by a second from its master's.
local function claimed_before()
  local from, to = '-inf', '+inf'
  if GIVEN_NOW == '' then
    from, to = int(after(tonumber(ARGV[FIRST + 1]) - AGE) - 1000), int(till + 1000)
  end
  local first, n, mine = redis.call('ZCOUNT', LEASES, '-inf', '(' .. from), redis.call('ZCOUNT', LEASES, from, to), {}
  for at = first, first + n - 1, 1000 do
    local ms = redis.call('ZRANGE', LEASES, at, math.min(at + 1000, first + n) - 1)
    for i, v in ipairs(on('HMGET', HELD, ms)) do
      local m, name = ms[i], v and string.sub(v, 9, -5)
      if v and (name == claim or name == '?' .. claim) and in_force(m, v) then
        mine[#mine + 1] = {m = m, due = due_in(v), seq = struct.unpack('>I7', m)}
        redis.call('ZREM', DUE, m) -- there only if the first try was stopped half-way
      end
    end
  end
  table.sort(mine, function(a, b)
    return a.due < b.due or a.due == b.due and a.seq < b.seq
  end)
  if #mine == 0 then
    return false
  end
  ROOM, limit = math.huge, math.huge
  local ms, dues = {}, {}
  for i, h in ipairs(mine) do
    ms[i], dues[i] = h.m, h.due
  end
  hand_out_first(ms, dues)
  out[3] = tonumber(redis.call('ZSCORE', LEASES, ms[#ms]))
  return true
end
