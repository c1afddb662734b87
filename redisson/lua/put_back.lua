-- Sets the entry of STATES of a key, or removes it where state is nil.
local function set_state(key, state)
  local was = redis.call('HGET', STATES, key)
  local inverse = was and {'HSET', STATES, key, was} or {'HDEL', STATES, key}
  if state then
    write(inverse, 'HSET', STATES, key, state)
  elseif was then
    write(inverse, 'HDEL', STATES, key)
  end
end

-- Notes where a waiting message is.
local function remember(msg, due, attempts)
  local noted = ENVELOPE or renamed(msg) or attempts > 0 or due ~= msg.origin
  set_state(msg.key, noted and waiting(due, msg.origin, attempts, prefix_of(msg)) or nil)
  if renamed(msg) then
    set_state(prefix_of(msg), 'A' .. msg.key)
  end
end

-- Adds a message to where it is among those of its due time. The caller then removes it from where
-- it was.
local function put_back(msg, due, attempts)
  prove()
  if LISTED or not ours(msg.member) then -- Java's are always there
    write({'LTRIM', INDEX, 1, -1}, 'LPUSH', INDEX, msg.member) -- it is older than most
  end
  remember(msg, due, attempts)
  set_due(msg.member, due)
end
