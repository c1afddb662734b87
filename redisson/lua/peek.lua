-- Lists waiting messages by due time: the items of DEST, in its order, among those in TIMES. Arguments:
-- how many, and where the page begins: how many items of DEST come before it; how many entries of
-- HANDED do; the due time in ms of the last of these, and of the last such member of TIMES; the prefix
-- of that entry, and the beginning of that member. The last four are empty where there is none.
-- Returns where the next page begins, or nothing where there is no more; the time in ms; and for each
-- message where it is, D or T, its key, due time, origin, attempts, and its payload or member. The key
-- is empty for an entry that is unreadable or has no id yet, the due time where it is unknown. Leased
-- messages are left out.
local limit, passed, known = tonumber(ARGV[FIRST]), tonumber(ARGV[FIRST + 1]), tonumber(ARGV[FIRST + 2])
local entry_at, due = tonumber(ARGV[FIRST + 3]), tonumber(ARGV[FIRST + 4])
local prefix, member = ARGV[FIRST + 5], ARGV[FIRST + 6]
local out = {{}, int(NOW)}

-- A page ends when the script has had its time, or at so many bytes where the server's clock does
-- not tell it.
local room, bytes = 512 * 1024, 0

local function full()
  return limit == 0 or room <= 0 or #out > 2 and spent(bytes)
end

-- A beginning of so many bytes tells all members apart: an id has 256 at most, then comes the
-- length.
local BEGINNING = 300

local function add(place, msg, what)
  recall(msg, redis.call('HGET', STATES, msg.key))
  out[#out + 1] = place
  out[#out + 1] = msg.key
  out[#out + 1] = msg.due and int(msg.due) or ''
  out[#out + 1] = msg.due and int(msg.origin) or ''
  out[#out + 1] = msg.attempts
  out[#out + 1] = what
  bytes = #what
  limit, room = limit - 1, room - bytes
end

-- Which of the entries has the prefix. Where its message has gone, the last one that is not behind it.
local function place_of_entry(entries)
  local last = 0
  for i, entry in ipairs(entries) do
    if entry_prefix(entry) == prefix then
      return i
    elseif not sorts_before(entry_at, prefix, entry_due(entry), entry_prefix(entry)) then
      last = i
    end
  end
  return last
end

-- How many in TIMES are at or before the place.
local function passed_times()
  if not due then
    return 0
  end
  local first = redis.call('ZCOUNT', TIMES, '-inf', '(' .. int(due))
  local last = first + redis.call('ZCOUNT', TIMES, int(due), int(due))
  while first < last do
    local middle = math.floor((first + last) / 2)
    if compare(redis.call('ZRANGE', TIMES, middle, middle)[1], member, #member) > 0 then
      last = middle
    else
      first = middle + 1
    end
  end
  return first
end

-- Whether an item of DEST was listed when it was in TIMES.
local function listed(item)
  local msg = due and item.entry and item.msg
  return msg and (msg.due < due or msg.due == due and compare(msg.member, member, msg.n) <= 0)
end

local function list()
  trim_handed()
  local entries = redis.call('LRANGE', HANDED, 0, -1)
  if entry_at then
    local now = place_of_entry(entries)
    passed, known = math.max(passed + now - known, 0), now
  end
  local there = taker(redis.call('LLEN', DEST), recognizer(entries, known), passed)
  local skip, looked, page, at = passed_times(), limit, {}, 1
  while looked > 0 and not full() do
    if at > #page then
      page, at = redis.call('ZRANGE', TIMES, skip, skip + math.min(looked, 10) - 1, 'WITHSCORES'), 1
    end
    local item, m = there.peek(), page[at]
    if item and before(item, m and {member = m, due = tonumber(page[at + 1])}) then
      if not listed(item) then
        add('D', item.msg or {key = ENVELOPE and enveloped(item.payload, 0) or '', attempts = 0}, item.payload)
      end
      there.pop()
      passed = passed + 1
      if item.entry then
        entry_at, prefix = entry_due(item.entry), entry_prefix(item.entry)
      end
    elseif m then
      due, member = tonumber(page[at + 1]), m
      if not leased(m) then
        add('T', parse(m, due) or {key = '', due = due, origin = due, attempts = 0}, m)
      end
      skip, at, looked = skip + 1, at + 2, looked - 1
    else
      return
    end
  end
  if there.left() > 0 or redis.call('ZCARD', TIMES) > skip then
    known = entry_at and place_of_entry(entries) or 0
    out[1] = {
      int(passed), int(known), entry_at and int(entry_at) or '', due and int(due) or '',
      prefix, string.sub(member, 1, BEGINNING),
    }
  end
end

expire()
if more_ended then -- what they held belongs to the list: the page is empty, and the next one begins where this one should have
  out[1] = {unpack(ARGV, FIRST + 1, FIRST + 6)}
else
  list()
end
return out
