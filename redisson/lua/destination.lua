-- DEST is what Java takes from, a list of bare payloads. HANDED tells which messages those are that we have moved
-- there: due time, digest of the payload, prefix; in the order of DEST. Who pops from DEST at its head, as Java
-- does, leaves HANDED too long by as much at its own.

local function trim_handed()
  local gone = redis.call('LLEN', HANDED) - redis.call('LLEN', DEST)
  if gone > 0 then
    redis.call('LTRIM', HANDED, gone, -1)
  end
end

local DIGEST = 40

local function handed_entry(msg)
  return struct.pack('>d', msg.due) .. redis.sha1hex(payload_of(msg)) .. prefix_of(msg)
end

local function handed_digest(entry)
  return string.sub(entry, 9, 8 + DIGEST)
end

-- The message of an entry, when this is its payload.
local function handed_message(entry, payload)
  local prefix = string.sub(entry, 9 + DIGEST)
  return parse(prefix .. struct.pack('<I8', #payload) .. payload, (struct.unpack('>d', entry)))
end

-- Goes through HANDED beside DEST: returns which message a payload is and its place, nil for one that Java has moved.
local function recognizer()
  local entries, last = nil, 0
  return function(payload)
    if not entries then
      trim_handed()
      entries = redis.call('LRANGE', HANDED, 0, -1)
    end
    local digest = last < #entries and redis.sha1hex(payload)
    for i = last + 1, #entries do
      if handed_digest(entries[i]) == digest then
        last = i
        return handed_message(entries[i], payload), i
      end
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

-- A reader of DEST: peek returns its first item with its payload and, where that is known, the message; pop takes it out. It
-- reads ahead, more each time.
local function taker()
  local read, at, ahead = {}, 1, 1
  local recognize, handed = recognizer(), 0
  local t = {}

  local function item_of(payload)
    local item = {payload = payload}
    if ENVELOPE then
      item.msg, item.readable = open_envelope(payload)
    else
      item.msg, item.place = recognize(payload)
      item.readable = true
    end
    return item
  end

  function t.peek()
    if at > #read and ahead > 0 then
      read, at = redis.call('LRANGE', DEST, 0, ahead - 1), 1
      ahead = #read > 0 and math.min(ahead * 2, 64) or 0 -- there is no more
    end
    if type(read[at]) == 'string' then
      read[at] = item_of(read[at])
    end
    return read[at]
  end

  function t.pop()
    local item = read[at]
    at = at + 1
    redis.call('LPOP', DEST)
    if item.place then
      redis.call('LTRIM', HANDED, item.place - handed, -1)
      handed = item.place
    end
  end

  return t
end

-- Takes a payload of a digest out of DEST.
local function take_payload(digest)
  for from = 0, redis.call('LLEN', DEST) - 1, 10 do
    for _, payload in ipairs(redis.call('LRANGE', DEST, from, from + 9)) do
      if redis.sha1hex(payload) == digest then
        redis.call('LREM', DEST, 1, payload)
        return payload
      end
    end
  end
  return nil
end

-- Takes a message that was handed over out of DEST again. Returns its member, nil where Java has taken it.
local function take_handed(prefix)
  trim_handed()
  for _, entry in ipairs(redis.call('LRANGE', HANDED, 0, -1)) do
    if string.sub(entry, 9 + DIGEST) == prefix then
      redis.call('LREM', HANDED, 1, entry)
      local payload = take_payload(handed_digest(entry))
      return payload and handed_message(entry, payload).member or nil
    end
  end
  return nil
end

-- The same for an envelope that Java has moved.
local function take_envelope(key, prefix)
  for _, payload in ipairs(redis.call('LRANGE', DEST, 0, -1)) do
    if enveloped(payload, 0) == key and redis.call('LREM', DEST, 1, payload) == 1 then
      return prefix .. struct.pack('<I8', #payload) .. payload
    end
  end
  return nil
end

-- Takes a message under an ended lease.
local function take_ended(key, v)
  if in_force(key) then
    return nil, 'HELD'
  end
  local msg = end_lease(key, v)
  return msg, not msg and 'NONE' or nil
end

-- Where a message waits by its state, or without one: due, origin, attempts, prefix.
local function place_of(key, origin, state)
  if not state then
    return origin, origin, 0, key
  end
  local due, first, attempts, rest = struct.unpack('>ddI4', state, 2)
  return due, first, attempts, string.sub(state, rest)
end

-- Takes the member with that prefix from wherever it waits, nil where it is gone.
local function take_member(prefix, due, key)
  local m = find(prefix, due)
  if m then
    redis.call('ZREM', TIMES, m)
    unlist(m)
    return m
  end
  return ENVELOPE and take_envelope(key, prefix) or not ENVELOPE and take_handed(prefix) or nil
end

-- Takes a message that waits out of where it waits. Returns it, or nil and the reason: NONE or HELD.
local take_waiting

function take_waiting(key, origin)
  local v = redis.call('HGET', HELD, key)
  if v then
    return take_ended(key, v)
  end
  local state = redis.call('HGET', STATES, key)
  local kind = state and string.sub(state, 1, 1)
  if kind == 'A' then -- a redriven message, named by the id that it has now
    return take_waiting(string.sub(state, 2), origin)
  elseif kind == 'D' or ENVELOPE and not state then
    return nil, 'NONE'
  end
  local due, first, attempts, prefix = place_of(key, origin, state)
  local m = take_member(prefix, due, key)
  redis.call('HDEL', STATES, key, prefix)
  if not m then
    return nil, 'NONE'
  end
  local msg = parse(m, due)
  msg.key, msg.origin, msg.attempts = key, first, attempts
  return msg
end

-- Forgets states of messages that Java has taken: a few at random each time. Only while DEST is empty, since what
-- is there may be one of them.
local function forget_some()
  local keys = redis.call('LLEN', DEST) == 0 and redis.call('HLEN', STATES) > 0 and redis.pcall('HRANDFIELD', STATES, 5) or {}
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
