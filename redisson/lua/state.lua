-- STATES has for a key
--   W | due, origin, attempts | prefix   it waits, in TIMES or HANDED under that prefix
--   D                                    it is dead
--   A | key                              it is the prefix of that message, which waits or is leased
-- A message shared with Java that nothing has happened to yet has no entry.
local function waiting(due, origin, attempts, prefix)
  return 'W' .. struct.pack('>ddI4', due, origin, attempts) .. prefix
end

-- Adds to a message its entry of STATES.
local function recall(msg, state)
  if state and string.sub(state, 1, 1) == 'A' then
    msg.key = string.sub(state, 2)
    state = redis.call('HGET', STATES, msg.key)
  end
  if state and string.sub(state, 1, 1) == 'W' then
    local _
    _, msg.origin, msg.attempts = struct.unpack('>ddI4', state, 2)
  end
end

-- Whether a message is under another id than the one that names it: it was redriven.
local function renamed(msg)
  return not ENVELOPE and (msg.n ~= #msg.key or prefix_of(msg) ~= msg.key)
end
