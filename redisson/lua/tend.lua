-- Does what is to be done while nobody of us waits: ends leases, moves what is due to DEST, where Java takes it, until
-- it has as many: how many. Returns the time in us and the next event in ms.
local wanted = tonumber(ARGV[FIRST])

-- Whether an entry of HANDED comes before another.
local function sorts_before(a, b)
  local x, y = struct.unpack('>d', a), struct.unpack('>d', b)
  if x ~= y then
    return x < y
  end
  return compare(string.sub(a, 9), string.sub(b, 9), 17) < 0
end

-- Adds to DEST what is older than something there: a message that came back. Java may have taken the other by now.
local function insert(entry)
  local payload = payload_of(parse(string.sub(entry, 9)))
  for _, e in ipairs(redis.call('LRANGE', HANDED, 0, -1)) do
    if sorts_before(entry, e) and redis.call('LINSERT', DEST, 'BEFORE', payload_of(parse(string.sub(e, 9))), payload) > 0 then
      redis.call('LINSERT', HANDED, 'BEFORE', e, entry)
      return
    end
  end
  redis.call('RPUSH', DEST, payload)
  redis.call('RPUSH', HANDED, entry)
end

local function hand_over(room)
  local due, moved = reader(room), 0
  local last = redis.call('LINDEX', HANDED, -1)
  local payloads, entries, back = {}, {}, {}
  while moved < room and (moved == 0 or not spent()) and due.peek() do
    local msg = due.peek()
    due.pop()
    moved = moved + 1
    local entry = struct.pack('>d', msg.due) .. msg.member
    if last and sorts_before(entry, last) then
      back[#back + 1] = entry
    else
      payloads[#payloads + 1], entries[#entries + 1] = payload_of(msg), entry
    end
  end
  due.done()
  on('RPUSH', DEST, payloads)
  on('RPUSH', HANDED, entries)
  for _, entry in ipairs(back) do
    insert(entry)
  end
end

-- Forgets states of messages that Java has taken: a few at random each time.
local function forget_some()
  local keys = redis.call('HLEN', STATES) > 0 and redis.pcall('HRANDFIELD', STATES, 5) or {}
  for _, key in ipairs(keys.err and {} or keys) do
    local state = redis.call('HGET', STATES, key)
    local kind, gone = string.sub(state, 1, 1), false
    if kind == 'W' then
      local due, _, _, rest = struct.unpack('>ddI4', state, 2)
      gone = not find(string.sub(state, rest), due)
    elseif kind == 'A' then
      gone = redis.call('HEXISTS', STATES, string.sub(state, 2)) == 0
    elseif kind == 'L' then
      gone = redis.call('HEXISTS', HELD, string.sub(state, 2)) == 0
    end
    if gone then
      redis.call('HDEL', STATES, key)
    end
  end
end

local there = redis.call('LLEN', DEST)
expire(100)
if not ENVELOPE then
  trim_handed()
  if there < wanted then
    hand_over(wanted - there)
  end
end
if redis.call('LLEN', DEST) == 0 then
  forget_some()
end
tidy()

local head = redis.call('ZRANGE', TIMES, 0, 0, 'WITHSCORES')[2]
local ends = redis.call('ZRANGE', LEASES, 0, 0, 'WITHSCORES')[2]
local soonest = math.min(tonumber(head or math.huge), tonumber(ends or math.huge))
if soonest <= NOW then
  soonest = NOW + 50 -- DEST is full, or the script stopped early
end
return {int(NOW_US), soonest < math.huge and int(soonest) or '-1'}
