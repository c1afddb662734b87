-- Does what is to be done while nobody of us waits: ends leases, moves what is due to DEST, where Java takes it, until
-- it has as many: how many. Returns the time in us and the next event in ms.
local wanted = tonumber(ARGV[FIRST])

-- A script moves so many bytes of payload, that Redis is not kept long.
local ROOM = 1024 * 1024

-- Whether an entry of HANDED comes before another.
local function sorts_before(a, b)
  local x, y = struct.unpack('>d', a), struct.unpack('>d', b)
  if x ~= y then
    return x < y
  end
  return compare(string.sub(a, 9 + DIGEST), string.sub(b, 9 + DIGEST), 17) < 0
end

-- The payload of an entry of HANDED in DEST, nil where Java has taken it.
local function lies_there(entry)
  for _, payload in ipairs(redis.call('LRANGE', DEST, 0, -1)) do
    if redis.sha1hex(payload) == handed_digest(entry) then
      return payload
    end
  end
end

-- Adds to DEST what is older than something there: a message that came back.
local function insert(entry, payload)
  for _, e in ipairs(redis.call('LRANGE', HANDED, 0, -1)) do
    local next_one = sorts_before(entry, e) and lies_there(e)
    if next_one then
      redis.call('LINSERT', DEST, 'BEFORE', next_one, payload)
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
  while moved < room and ROOM > 0 and (moved == 0 or not spent()) and due.peek() do
    local msg = due.peek()
    moved = moved + 1
    if due.pop() then
      local entry, payload = handed_entry(msg), payload_of(msg)
      ROOM = ROOM - #payload
      if last and sorts_before(entry, last) then
        back[#back + 1] = {entry, payload}
      else
        payloads[#payloads + 1], entries[#entries + 1] = payload, entry
      end
    end
  end
  due.done()
  on('RPUSH', DEST, payloads)
  on('RPUSH', HANDED, entries)
  for _, b in ipairs(back) do
    insert(b[1], b[2])
  end
end

local there = redis.call('LLEN', DEST)
expire(100)
trim_handed()
if there < wanted then
  hand_over(wanted - there)
end
forget_some()
tidy()

local head = redis.call('ZRANGE', TIMES, 0, 0, 'WITHSCORES')[2]
local ends = redis.call('ZRANGE', LEASES, 0, 0, 'WITHSCORES')[2]
local soonest = math.min(tonumber(head or math.huge), tonumber(ends or math.huge))
if soonest <= NOW and redis.call('LLEN', DEST) >= wanted then
  soonest = NOW + 50 -- it is for Java now
end
return {int(NOW_US), soonest < math.huge and int(soonest) or '-1'}
