-- The trigger is a key that expires when the first message is due, for who listens to expiries. Without such listeners TRIGGER is
-- empty. It may go before that, where it was for a message that is not there any more, and not after.

-- Why sleepers could not be told. What was stored is stored all the same.
local silence

local function hint(command, ...)
  local reply = redis.pcall(command, ...)
  if type(reply) == 'table' and reply.err then
    silence = command .. ': ' .. reply.err
    return nil
  end
  return reply
end

-- Tells sleepers when the first message is due, and whether the trigger will tell then.
local function tell(due)
  local later = TRIGGER ~= '' and due > NOW
  if later then
    hint('SET', TRIGGER, '1', 'PX', int(due - NOW)) -- the value says nothing; Redis has the small numbers once for all keys
  end
  hint('PUBLISH', CHANNEL, int(due) .. (later and ' trigger' or ''))
end

-- The first member that waits, for who tells sleepers of it.
local function first_waiting()
  return (hint('ZRANGE', DUE, 0, 0) or {})[1]
end

-- Tells sleepers of a message if it is now the first.
local function announce(m, due)
  if m and first_waiting() == m then
    tell(due)
  end
end

-- The reply of a script, with why sleepers could not be told behind it.
local function told(reply)
  return silence and {reply, silence} or reply
end
