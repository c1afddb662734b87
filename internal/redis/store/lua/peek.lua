-- Lists waiting messages, by due time and push order: how many, and behind which place, a due time
-- in ms and a member, or nothing. Returns for each due time, member, attempts, content, and in
-- front of them the place of the next page, or '' twice where there are no more, and the time in ms;
-- or MORE while ended leases are to be given back first. Entries that a stop left without a message are not
-- listed: a page may be empty though there are more.
local limit, from_due, from = tonumber(ARGV[FIRST]), tonumber(ARGV[FIRST + 1]), ARGV[FIRST + 2]

-- A reply stops at so many bytes of content.
local room = 8 * 1024 * 1024

-- So many more entries are looked at, for those that are not listed.
local FURTHER = 100

-- Byte by byte, as Redis sorts members; Lua's own comparison goes by the locale.
local function less(a, b)
  for i = 1, math.min(#a, #b) do
    local x, y = string.byte(a, i), string.byte(b, i)
    if x ~= y then
      return x < y
    end
  end
  return #a < #b
end

local function before(due, m, other_due, other)
  if due ~= other_due then
    return due < other_due
  end
  return less(m, other)
end

-- How many in DUE are at or before the place.
local function passed()
  if not from_due then
    return 0
  end
  local first = redis.call('ZCOUNT', DUE, '-inf', '(' .. int(from_due))
  local last = first + redis.call('ZCOUNT', DUE, int(from_due), int(from_due))
  while first < last do
    local middle = math.floor((first + last) / 2)
    if less(from, redis.call('ZRANGE', DUE, middle, middle)[1]) then
      last = middle
    else
      first = middle + 1
    end
  end
  return first
end

-- Adds the messages that a mover left in READY. They are due, and few.
local function add_moved(waiting)
  for _, m in ipairs(redis.call('LRANGE', READY, 0, -1)) do
    local v = redis.call('HGET', HELD, m)
    if v and moved(v) and (not from_due or before(from_due, from, due_in(v), m)) then
      waiting[#waiting + 1] = {due_in(v), m}
    end
  end
end

local function list()
  local waiting, skip = {}, passed()
  local page = redis.call('ZRANGE', DUE, skip, skip + limit + FURTHER, 'WITHSCORES')
  for i = 1, #page, 2 do
    waiting[#waiting + 1] = {tonumber(page[i + 1]), page[i]}
  end
  add_moved(waiting)
  table.sort(waiting, function(a, b)
    return before(a[1], a[2], b[1], b[2])
  end)
  return waiting
end

if expire() then
  return 'MORE'
end
local out, waiting = {'', '', int(NOW)}, list()
for i, w in ipairs(waiting) do
  if #out >= 4 * limit + 3 or i > limit + FURTHER or room <= 0 then
    out[1], out[2] = int(waiting[i - 1][1]), waiting[i - 1][2]
    break
  end
  local id = id_of(w[2])
  local rec = redis.call('HGET', MSG, id)
  if rec then
    local gen, untouched = gens(id)
    out[#out + 1] = int(w[1])
    out[#out + 1] = w[2]
    out[#out + 1] = gen - untouched
    out[#out + 1] = string.sub(rec, 8)
    room = room - #rec
  end
end
return out
