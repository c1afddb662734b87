-- DEST is what Java takes from, a list of bare payloads. HANDED tells which messages those are that we have
-- moved there. Who pops from DEST at its head, as Java does, leaves HANDED too long by as much at its own.

local function trim_handed()
  local gone = redis.call('LLEN', HANDED) - redis.call('LLEN', DEST)
  if gone > 0 then
    redis.call('LTRIM', HANDED, gone, -1)
  end
end

-- Where each payload is in HANDED, in order.
local function places(entries)
  local at = {}
  for i, e in ipairs(entries) do
    local payload = payload_of(parse(string.sub(e, 9)))
    at[payload] = at[payload] or {}
    table.insert(at[payload], i)
  end
  return at
end

-- Adds to items of DEST which message each is. Both lists are in the same order.
local function recognize(items)
  trim_handed()
  local entries = redis.call('LRANGE', HANDED, 0, -1)
  local at, last = places(entries), 0
  for _, item in ipairs(items) do
    local mine = at[item.payload]
    while mine and mine[1] and mine[1] <= last do
      table.remove(mine, 1)
    end
    if mine and mine[1] then
      last = mine[1]
      item.place, item.msg = last, parse(string.sub(entries[last], 9), (struct.unpack('>d', entries[last])))
    end
  end
end

-- An envelope says itself which message it is.
local function open_envelope(item)
  local key = enveloped(item.payload, 0)
  local state = key and redis.call('HGET', STATES, key)
  if state and string.sub(state, 1, 1) == 'W' then
    local due, _, _, rest = struct.unpack('>ddI4', state, 2)
    item.msg = parse(string.sub(state, rest) .. struct.pack('<I8', #item.payload) .. item.payload, due)
  end
  item.unreadable = not key
end

-- The first items of DEST: payload, and where it is known, the message.
local function destination(limit)
  local items = {}
  for _, payload in ipairs(redis.call('LRANGE', DEST, 0, limit - 1)) do
    items[#items + 1] = {payload = payload}
  end
  if #items > 0 and not ENVELOPE then
    recognize(items)
  end
  for _, item in ipairs(items) do
    if ENVELOPE then
      open_envelope(item)
    end
  end
  return items
end

-- Takes a message that was handed over out of DEST again. Returns its member, nil where Java has taken it.
local function take_handed(prefix)
  trim_handed()
  for _, e in ipairs(redis.call('LRANGE', HANDED, 0, -1)) do
    local m = string.sub(e, 9)
    if string.sub(m, 1, #prefix) == prefix then
      redis.call('LREM', HANDED, 1, e)
      return redis.call('LREM', DEST, 1, payload_of(parse(m))) == 1 and m or nil
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
local function take_ended(lease)
  if in_force(lease) then
    return nil, 'HELD'
  end
  local msg = end_lease(lease, redis.call('HGET', HELD, lease))
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

-- Takes the member with that prefix from wherever it waits, nil where it is gone. What stands for a lease is not
-- to be taken, and says so.
local function take_member(prefix, due, key)
  local m = find(prefix, due)
  if m and is_rescue(m) then
    return nil, 'HELD'
  elseif m then
    redis.call('ZREM', TIMES, m)
    unlist(m)
    return m
  end
  return ENVELOPE and take_envelope(key, prefix) or not ENVELOPE and take_handed(prefix) or nil
end

-- Takes a message that waits out of where it waits. Returns it, or nil and the reason: NONE or HELD.
local function take_waiting(key, origin)
  local state = redis.call('HGET', STATES, key)
  local kind = state and string.sub(state, 1, 1)
  if kind == 'L' then
    return take_ended(string.sub(state, 2))
  elseif kind == 'D' or kind == 'A' or ENVELOPE and not state then
    return nil, 'NONE'
  end
  local due, first, attempts, prefix = place_of(key, origin, state)
  local m, why = take_member(prefix, due, key)
  redis.call('HDEL', STATES, key, prefix)
  if not m then
    return nil, why or 'NONE'
  end
  local msg = parse(m, due)
  msg.key, msg.origin, msg.attempts = key, first, attempts
  return msg
end
