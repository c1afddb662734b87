-- Lists waiting messages by due time: the items of DEST, in its order, among those in TIMES. Arguments:
-- how many, and where the page begins: behind how many items of DEST, how many of these are behind the
-- last one that HANDED knows, the due time in ms of that one, and of the last in TIMES, the prefix of
-- that entry, and the beginning of that member. The last four are empty where there is none. Returns
-- where the next page begins, or nothing where there is no more; the time in ms; and for each message
-- where it is, D or T, its key, due time, origin, attempts, and its payload or member. The key is empty
-- for an entry that is unreadable or has no id yet, the due time where it is unknown. Leased messages
-- are left out.
local limit, passed, behind = tonumber(ARGV[FIRST]), tonumber(ARGV[FIRST + 1]), tonumber(ARGV[FIRST + 2])
local entry_at, due = tonumber(ARGV[FIRST + 3]), tonumber(ARGV[FIRST + 4])
local prefix, member = ARGV[FIRST + 5], ARGV[FIRST + 6]
local out = {{}, int(NOW)}

-- A page ends when the script has had its time, or at so many bytes where the server's clock does
-- not tell it.
local room, bytes, begun = 512 * 1024, 0, false

local function full()
  return limit == 0 or room <= 0 or begun and spent(bytes)
end

local function read(what)
  bytes, begun = #what, true
  room = room - bytes
end

-- A beginning of so many bytes tells members of different ids apart: an id has 256 at most, then
-- comes the length.
local BEGINNING = 300

-- A score as it is: Java's are whole, others need not be.
local function exact(score)
  return score and string.format('%.17g', score) or ''
end

local function add(place, msg, what)
  recall(msg, redis.call('HGET', STATES, msg.key))
  out[#out + 1] = place
  out[#out + 1] = msg.key
  out[#out + 1] = msg.due and int(msg.due) or ''
  out[#out + 1] = msg.due and int(msg.origin) or ''
  out[#out + 1] = msg.attempts
  out[#out + 1] = what
  limit = limit - 1
end

-- Where the item of an entry is in DEST, of equal items the one that is as far from the tail; false
-- where there is none, and an error where the server is too old to tell.
local function place_of_item(entries, at)
  local digest, copies, rank = entry_digest(entries[at]), 0, 0
  for i, entry in ipairs(entries) do
    if entry_digest(entry) == digest then
      copies, rank = copies + 1, rank + (i >= at and 1 or 0)
    end
  end
  local payload = redis.call('HGET', PAYLOADS, entry_prefix(entries[at]))
  return payload and redis.pcall('LPOS', DEST, payload, 'RANK', copies == 1 and 1 or -rank)
end

-- Finds where the page begins in DEST: behind the item of the cursor's entry, or where that has gone,
-- of the last one before it that is there; but not behind the item of the next one. Java takes at the
-- head, as a rule: where so many are gone, those before them are too. Looking for one that is gone
-- walks through all of DEST. Returns how many entries come before the page.
local MISSING, STEPS = 20, 20000

local function resume(entries)
  local last = 0
  for i, entry in ipairs(entries) do
    if entry_due(entry) == entry_at and entry_prefix(entry) == prefix then
      last = i
      break
    elseif sorts_before(entry_due(entry), entry_prefix(entry), entry_at, prefix) then
      last = i
    end
  end
  local next_item = last < #entries and place_of_item(entries, last + 1)
  if type(next_item) == 'table' then
    return last
  end
  local tries = math.min(next_item or MISSING, MISSING, STEPS / (redis.call('LLEN', DEST) + 1))
  local item = false
  for i = last, math.max(last - tries, 1), -1 do
    item = item or place_of_item(entries, i)
  end
  if type(item) ~= 'table' then
    item = item or -1
    passed = item + 1 + behind
    local clips = next_item and next_item > item and next_item < passed
    if clips and redis.sha1hex(redis.call('LINDEX', DEST, next_item)) == entry_digest(entries[last + 1]) then
      passed = next_item
    end
  end
  return last
end

-- How many in TIMES are at or before the place.
local function passed_times()
  if not due then
    return 0
  end
  local first = redis.call('ZCOUNT', TIMES, '-inf', '(' .. exact(due))
  local last = first + redis.call('ZCOUNT', TIMES, exact(due), exact(due))
  while first < last do
    local middle = math.floor((first + last) / 2)
    if compare(redis.call('ZRANGE', TIMES, middle, middle)[1], member, BEGINNING) > 0 then
      last = middle
    else
      first = middle + 1
    end
  end
  return first
end

-- Returns a function that tells whether an item of DEST was on an earlier page, when it was in TIMES.
local function listed_before()
  local last, beginning = due, member
  return function(msg)
    return msg and last and (msg.due < last or msg.due == last and compare(msg.member, beginning, msg.n) <= 0)
  end
end

local function pass(item)
  passed, behind = passed + 1, behind + 1
  if item.entry then
    behind, entry_at, prefix = 0, entry_due(item.entry), entry_prefix(item.entry)
  end
end

local function list()
  trim_handed()
  local entries = redis.call('LRANGE', HANDED, 0, -1)
  local known = entry_at and resume(entries) or 0
  local there, listed = taker(redis.call('LLEN', DEST), recognizer(entries, known), passed), listed_before()
  local skip, looked, page, at, ahead = passed_times(), limit, {}, 1, 1
  local due_now = redis.call('ZCOUNT', TIMES, '-inf', int(NOW))
  while looked > 0 and not full() do
    if at > #page and ahead > 0 and (skip < due_now or there.left() <= 0) then
      page, at = redis.call('ZRANGE', TIMES, skip, skip + math.min(looked, ahead) - 1, 'WITHSCORES'), 1
      ahead = #page > 0 and next_page(#page / 2, bytes_of(page, 2)) or 0 -- there is no more
    end
    local item, m = there.peek(), page[at]
    if item and before(item, m and {member = m, due = tonumber(page[at + 1])}) then
      if not listed(item.msg) then
        add('D', item.msg or {key = ENVELOPE and enveloped(item.payload, 0) or '', attempts = 0}, item.payload)
      end
      there.pop()
      pass(item)
      read(item.payload)
    elseif m then
      due, member = tonumber(page[at + 1]), m
      if not leased(m) then
        add('T', parse(m, due) or {key = '', due = due, origin = due, attempts = 0}, m)
      end
      skip, at, looked = skip + 1, at + 2, looked - 1
      read(m)
    else
      return
    end
  end
  if there.left() > 0 or redis.call('ZCARD', TIMES) > skip then
    out[1] = {int(passed), int(behind), exact(entry_at), exact(due), prefix, string.sub(member, 1, BEGINNING)}
  end
end

expire()
if more_ended then -- what they held belongs to the list: the page is empty, and the next one begins where this one should have
  out[1] = {unpack(ARGV, FIRST + 1, FIRST + 6)}
else
  list()
end
return out
