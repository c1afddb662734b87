-- Finds a message that waits. Returns it, with ended where its lease has ended or payload where it
-- is in DEST, or nil and the reason: NONE or HELD.
local find_waiting

function find_waiting(key, origin)
  local v = redis.call('HGET', HELD, key)
  if v then
    local msg = not in_force(key) and leased_message(key, v)
    if msg then
      msg.ended = true
    end
    return msg or nil, in_force(key) and 'HELD' or 'NONE'
  end
  local state = redis.call('HGET', STATES, key)
  local kind = state and string.sub(state, 1, 1)
  if kind == 'A' then -- a redriven message, named by the id that it has now
    return find_waiting(string.sub(state, 2), origin)
  elseif kind == 'D' or ENVELOPE and not state then
    return nil, 'NONE'
  end
  local due, first, attempts, prefix = place_of(key, origin, state)
  local m, payload = find(prefix, due), nil
  if not m then
    payload = ENVELOPE and find_envelope(key) or not ENVELOPE and redis.call('HGET', PAYLOADS, prefix) or nil
    m = payload and prefix .. struct.pack('<I8', #payload) .. payload
  end
  if not m then
    redis.call('HDEL', STATES, key, prefix)
    return nil, 'NONE'
  end
  local msg = parse(m, due)
  msg.key, msg.origin, msg.attempts, msg.payload = key, first, attempts, payload
  return msg
end

-- Takes a message that was handed over out of DEST again, and commits. Returns whether it was
-- there; else the step is undone.
local function take_handed(msg)
  local there = redis.call('LREM', DEST, 1, msg.payload) == 1
  if there then
    commit()
  else
    take_back()
  end
  if not ENVELOPE then
    forget_handed(entry_of(msg.due, msg.payload, prefix_of(msg)))
  end
  if not there then
    redis.call('HDEL', STATES, msg.key, prefix_of(msg))
  end
  return there
end
