-- Stores messages: '1' for any format, '1' for a look at the types of all keys; for each message its
-- key, in an envelope, or nothing, payload, due time in ms or '', delay in us. The key makes it
-- idempotent: one that is there stays. Returns an outcome for each: 1 stored; 2 unknown: the first try
-- may have stored one that was due and done since, which must not come again; 0 a message of that key
-- is there and waits, 3 it is in flight, 4 it is dead; without keys, due time and key. Before anything is written, members that show of
-- which format Java's readers are can refuse it all: -FORMAT and theirs.
local FORCE, ALL_TYPES = ARGV[FIRST] == '1', ARGV[FIRST + 1] == '1'
local PREFIX = FORMAT == 'V2' and 9 or 8 -- the length of what is before the payload's

local function refused()
  local last = LISTED and redis.call('LINDEX', INDEX, -1) or redis.call('ZRANGE', TIMES, -1, -1)[1]
  for _, m in ipairs({redis.call('ZRANGE', TIMES, 0, 0)[1] or '', last or ''}) do
    local theirs = format_of(m)
    if theirs and theirs ~= 'Both' and theirs ~= FORMAT then
      return theirs
    end
  end
end

-- Where a message of a key is, by STATES or HELD; nil for a new one.
local function known(key)
  return redis.call('HGET', STATES, key) or redis.call('HEXISTS', HELD, key) == 1 and 'L' or nil
end

-- The payload of the message of a key, wherever it is.
local function content_of(key, state)
  local kind = string.sub(state, 1, 1)
  if kind == 'L' then
    return payload_of(held(key, redis.call('HGET', HELD, key)))
  elseif kind == 'W' then
    local due, _, _, rest = struct.unpack('>ddI4', state, 2)
    local m = find(string.sub(state, rest), due)
    return m and payload_of(parse(m))
  elseif kind == 'D' then
    local death = redis.call('HGET', GRAVES, key)
    local _, _, _, _, n, rest = struct.unpack('>ddI4dI4', death)
    return payload_of(parse(string.sub(death, rest + n)))
  end
end

local wrong = ALL_TYPES and wrong_type()
if wrong then
  return redis.error_reply('WRONGTYPE ' .. wrong)
end
local theirs = FORMAT ~= 'Both' and not FORCE and refused()
if theirs then
  return redis.error_reply('FORMAT ' .. theirs)
end

local outcomes, times, members, states = {}, {}, {}, {}
local entries, keys = {}, {}
local earliest, first, last
for i = FIRST + 2, #ARGV, 4 do
  local key, payload = ARGV[i], ARGV[i + 1]
  local due = due_of(ARGV[i + 2], ARGV[i + 3])
  local state = key ~= '' and (states[key] or known(key))
  if state then
    -- A repeated push finds the message that its first try stored.
    local kind = string.sub(state, 1, 1)
    local why = kind == 'D' and 4 or kind == 'L' and in_force(key) and 3 or 0
    outcomes[#outcomes + 1] = (RETRY and content_of(key, state) == payload) and 1 or why
  elseif RETRY and due - math.ceil(AGE / 1000) <= NOW then
    outcomes[#outcomes + 1] = 2
  else
    last = (last or reserve((#ARGV - FIRST - 1) / 4)) + 1
    local m = new_member(last, payload, FORMAT)
    times[#times + 1], times[#times + 2] = int(due), m
    members[#members + 1] = m
    if key ~= '' then
      states[key] = waiting(due, due, 0, string.sub(m, 1, PREFIX))
      entries[#entries + 1], entries[#entries + 2] = key, states[key]
      keys[#keys + 1] = key
    end
    if not first or due < earliest then
      earliest, first = due, m
    end
    outcomes[#outcomes + 1] = key ~= '' and 1 or int(due) .. ' ' .. string.sub(m, 1, PREFIX)
  end
end
if #keys > 0 then
  redis.call('HDEL', STATES, '') -- without the right to it nothing could undo the next write
  write({'HDEL', STATES, unpack(keys)}, 'HSET', STATES, unpack(entries))
end
if #members > 0 then
  if LISTED then
    write({'LTRIM', INDEX, 0, -#members - 1}, 'RPUSH', INDEX, unpack(members))
  end
  redis.call('ZADD', TIMES, unpack(times))
  commit()
  announce(first, earliest)
end
return told(outcomes)
