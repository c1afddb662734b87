-- Lists waiting messages. First those in DEST, in its order, then TIMES by due time: how many; from
-- which place in DEST on, or -1 for behind it; behind which place in TIMES, a due time in ms and
-- the beginning of a member, or nothing. Returns where the next page begins, in the same three
-- values, all of them empty where there is no more; the time in ms; and for each message where it is,
-- D or T, its key, due time, origin, attempts, and its payload or member. The key is empty for an entry that is
-- unreadable or has no id yet, the due time where it is unknown. Leased messages are left out.
local limit, at = tonumber(ARGV[FIRST]), tonumber(ARGV[FIRST + 1])
local from_due, from = tonumber(ARGV[FIRST + 2]), ARGV[FIRST + 3]
local out = {'', '', '', int(NOW)}

-- A page ends when the script has had its time, or at so many bytes where the server's clock does
-- not tell it.
local room, bytes = 512 * 1024, 0

local function full()
  return limit == 0 or room <= 0 or #out > 4 and spent(bytes)
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

local function handed(payload, recognize)
  local msg
  if ENVELOPE then
    msg = open_envelope(payload)
  else
    msg = recognize(payload)
  end
  return msg or {key = ENVELOPE and enveloped(payload, 0) or '', attempts = 0}
end

-- Whether DEST was listed to its end.
local function list_handed()
  local recognize, last = recognizer(), redis.call('LLEN', DEST)
  while at < last do
    for _, payload in ipairs(redis.call('LRANGE', DEST, at, at + 9)) do
      if full() then
        out[1] = int(at)
        return false
      end
      add('D', handed(payload, recognize), payload)
      at = at + 1
    end
  end
  return true
end

-- How many in TIMES are at or before the place.
local function passed()
  if not from_due then
    return 0
  end
  local first = redis.call('ZCOUNT', TIMES, '-inf', '(' .. int(from_due))
  local last = first + redis.call('ZCOUNT', TIMES, int(from_due), int(from_due))
  while first < last do
    local middle = math.floor((first + last) / 2)
    if compare(redis.call('ZRANGE', TIMES, middle, middle)[1], from, #from) > 0 then
      last = middle
    else
      first = middle + 1
    end
  end
  return first
end

local function list_times()
  local skip, looked = passed(), limit
  local last_due, last
  while looked > 0 do
    local page = redis.call('ZRANGE', TIMES, skip, skip + math.min(looked, 10) - 1, 'WITHSCORES')
    if #page == 0 then
      return
    end
    for i = 1, #page, 2 do
      local m, due = page[i], tonumber(page[i + 1])
      if last and full() then
        looked = 0
        break
      end
      if not leased(m) then
        add('T', parse(m, due) or {key = '', due = due, origin = due, attempts = 0}, m)
      end
      last_due, last, looked, skip = due, m, looked - 1, skip + 1
    end
  end
  if last and redis.call('ZCARD', TIMES) > skip then
    out[1], out[2], out[3] = '-1', int(last_due), string.sub(last, 1, BEGINNING)
  end
end

expire()
if more_ended then -- what they held belongs to the list: the page is empty, and the next one begins where this one should have
  out[1], out[2], out[3] = int(at), ARGV[FIRST + 2], from
elseif at < 0 or list_handed() then
  if not full() then
    list_times()
  elseif redis.call('EXISTS', TIMES) == 1 then
    out[1] = int(at) -- the end of DEST
  end
end
return out
