-- DEST is the list that Java takes from, of bare payloads. HANDED names the messages that Go has
-- moved there: due time, digest of the payload, prefix, in the order of DEST. PAYLOADS has the
-- payload of each of them by its prefix, by which Redis itself finds it anywhere in DEST. Java
-- takes from either end and from the middle, and does not touch these two.

local DIGEST = 40

local function entry_of(due, payload, prefix)
  return struct.pack('>d', due) .. redis.sha1hex(payload) .. prefix
end

local function entry_due(entry)
  return (struct.unpack('>d', entry))
end

local function entry_digest(entry)
  return string.sub(entry, 9, 8 + DIGEST)
end

local function entry_prefix(entry)
  return string.sub(entry, 9 + DIGEST)
end

-- The message of an entry, when this is its payload.
local function handed_message(entry, payload)
  return parse(entry_prefix(entry) .. struct.pack('<I8', #payload) .. payload, entry_due(entry))
end

local function forget_handed(entry)
  redis.call('HDEL', PAYLOADS, entry_prefix(entry))
  redis.call('LREM', HANDED, 1, entry) -- last: without a payload it is forgotten later
end

-- Forgets the first n entries.
local function forget_first(n)
  local prefixes = {}
  for i, entry in ipairs(redis.call('LRANGE', HANDED, 0, n - 1)) do
    prefixes[i] = entry_prefix(entry)
    if i % 1000 == 0 or i == n then -- as many as Lua passes on at once
      on('HDEL', PAYLOADS, prefixes)
      prefixes = {}
    end
  end
  redis.call('LTRIM', HANDED, n, -1)
end

-- Whether the item at one place of DEST is that of the entry at another of HANDED.
local function same_at(item, at)
  local entry = redis.call('LINDEX', HANDED, at)
  local payload = entry and redis.call('HGET', PAYLOADS, entry_prefix(entry))
  return payload and payload == redis.call('LINDEX', DEST, item)
end

-- How many items of DEST are the payload of an entry: 0, 1, or where several entries may have the
-- same, all; nil where the server is too old to tell.
local function copies(entry, several)
  local payload = redis.call('HGET', PAYLOADS, entry_prefix(entry))
  if not payload then
    return 0
  end
  local found = several and redis.pcall('LPOS', DEST, payload, 'COUNT', 0) or redis.pcall('LPOS', DEST, payload)
  if several then
    return not found.err and #found or nil
  elseif type(found) == 'table' then
    return nil
  end
  return found and 1 or 0
end

-- Forgets as many entries as are gone: the last ones that DEST has nothing of any more, where Java
-- takes at the tail, then the first ones. Entries that it has no time for stay for another script.
local function forget_gone(gone)
  local entries, same, surplus = redis.call('LRANGE', HANDED, 0, -1), {}, {}
  for _, entry in ipairs(entries) do
    local digest = entry_digest(entry)
    same[digest] = (same[digest] or 0) + 1
  end

  local function forgets(entry)
    local digest = entry_digest(entry)
    if not surplus[digest] then
      local n = copies(entry, same[digest] > 1)
      surplus[digest] = n and same[digest] - n or 0
    end
    if surplus[digest] <= 0 then
      return false
    end
    forget_handed(entry)
    surplus[digest], gone = surplus[digest] - 1, gone - 1
    return true
  end

  local last = #entries
  while gone > 0 and last > 0 and not spent() and forgets(entries[last]) do
    last = last - 1
  end
  for i = 1, last do
    if gone == 0 or spent() then
      return
    end
    forgets(entries[i])
  end
end

local function trim_handed()
  local there = redis.call('LLEN', DEST)
  local gone = redis.call('LLEN', HANDED) - there
  if gone <= 0 then
    return
  elseif there == 0 then
    redis.call('UNLINK', HANDED, PAYLOADS)
  elseif same_at(0, gone) and same_at(-1, -1) then -- it was taken at the head, as mostly
    forget_first(gone)
  else
    forget_gone(gone)
  end
end

-- Tells which message an item of DEST is, best asked in its order: returns it and its entry, nil
-- for one that Java has moved. entries are those of HANDED, whose first ones, up to last,
-- were passed; without them it reads HANDED when it is asked.
local function recognizer(entries, last)
  local by_digest
  last = last or 0

  local function sort_out()
    by_digest = {}
    for i = last + 1, #entries do
      local digest = entry_digest(entries[i])
      by_digest[digest] = by_digest[digest] or {}
      table.insert(by_digest[digest], entries[i])
    end
  end

  return function(payload)
    if not entries then
      trim_handed()
      entries = redis.call('LRANGE', HANDED, 0, -1)
    end
    if last == #entries then
      return nil
    end
    local digest = redis.sha1hex(payload)
    if not by_digest and entry_digest(entries[last + 1]) == digest then
      last = last + 1
      return handed_message(entries[last], payload), entries[last]
    elseif not by_digest then
      sort_out()
    end
    local entry = by_digest[digest] and table.remove(by_digest[digest], 1)
    if entry then
      return handed_message(entry, payload), entry
    end
    return nil
  end
end

-- An envelope says itself which message it is. Returns it, and whether it is readable at all.
local function open_envelope(payload)
  local key = enveloped(payload, 0)
  local state = key and redis.call('HGET', STATES, key)
  if state and string.sub(state, 1, 1) == 'W' then
    local due, _, _, rest = struct.unpack('>ddI4', state, 2)
    return parse(string.sub(state, rest) .. struct.pack('<I8', #payload) .. payload, due), true
  end
  return nil, key ~= nil
end

-- Whether an item of DEST comes before a message in TIMES. Of one due time, a moved message comes
-- first, unless the numbers of Go's messages say otherwise.
local function before(item, msg)
  return not item.msg or not msg or not sorts_before(msg.due, msg.member, item.msg.due, item.msg.member)
end

-- A reader of DEST, which has so many items: peek returns its first item with its payload and, where
-- that is known, the message; pop takes it out, though only at done, together with all others. left
-- returns how many there are then. forget is for after that is committed. It reads ahead, more each
-- time. One that begins behind so many items only reads.
local function taker(n, recognize, popped)
  local read, at, ahead = {}, 1, math.min(n, 1)
  local entries, payloads = {}, {}
  recognize, popped = recognize or recognizer(), popped or 0
  local t = {}

  local function item_of(payload)
    local item = {payload = payload}
    if ENVELOPE then
      item.msg, item.readable = open_envelope(payload)
    else
      item.msg, item.entry = recognize(payload)
      item.readable = true
    end
    return item
  end

  function t.peek()
    if at > #read and ahead > 0 then
      read, at = redis.call('LRANGE', DEST, popped, popped + ahead - 1), 1
      ahead = #read > 0 and next_page(#read, bytes_of(read, 1)) or 0 -- there is no more
    end
    if type(read[at]) == 'string' then
      read[at] = item_of(read[at])
    end
    return read[at]
  end

  function t.pop()
    entries[#entries + 1] = read[at].entry
    payloads[#payloads + 1] = read[at].payload
    at, popped = at + 1, popped + 1
  end

  function t.left()
    return n - popped
  end

  function t.done()
    if popped > 0 then
      local inverse = {'LPUSH', DEST}
      for i = popped, 1, -1 do
        inverse[#inverse + 1] = payloads[i]
      end
      write(inverse, 'LTRIM', DEST, popped, -1)
    end
  end

  function t.forget()
    for _, entry in ipairs(entries) do
      pcall(forget_handed, entry) -- where it fails, the entry is forgotten later
    end
  end

  return t
end

-- Forgets states of messages that Java has taken: a few at random each time. Only while DEST is
-- empty, since what is there may be one of them.
local function forget_some()
  local keys = redis.call('LLEN', DEST) == 0 and redis.call('EXISTS', STATES) == 1 and redis.pcall('HRANDFIELD', STATES, 5) or {}
  for _, key in ipairs(keys.err and {} or keys) do
    local state = redis.call('HGET', STATES, key)
    local kind, gone = string.sub(state, 1, 1), false
    if kind == 'W' then
      local due, _, _, rest = struct.unpack('>ddI4', state, 2)
      gone = not find(string.sub(state, rest), due)
    elseif kind == 'A' then
      local other = string.sub(state, 2)
      gone = redis.call('HEXISTS', STATES, other) == 0 and redis.call('HEXISTS', HELD, other) == 0
    end
    if gone then
      redis.call('HDEL', STATES, key)
    end
  end
end
