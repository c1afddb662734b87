-- The trigger is a key that expires when the first message is due, for processes that listen to
-- expiries. Without such listeners TRIGGER is empty. The key may expire too early, where it was set
-- for a message that is gone, but never too late.

-- Why sleeping fetchers could not be told. The message is stored all the same.
local silence

local function hint(command, ...)
  local reply = redis.pcall(command, ...)
  if type(reply) == 'table' and reply.err then
    silence = command .. ': ' .. reply.err
    return nil
  end
  return reply
end

-- Tells sleeping fetchers when the first message is due, and whether the trigger will wake them
-- then.
local function tell(due)
  local later = TRIGGER ~= '' and due > NOW
  if later then
    hint('SET', TRIGGER, '1', 'PX', int(due - NOW)) -- the value says nothing; Redis has the small numbers once for all keys
  end
  hint('PUBLISH', CHANNEL, later and int(due) .. ' trigger' or due)
end

-- The first member that waits. Sleeping fetchers are told of it.
local function first_waiting()
  return (hint('ZRANGE', DUE, 0, 0) or {})[1]
end

-- Tells sleeping fetchers of a message if it is now the first.
local function announce(m, due)
  if m and first_waiting() == m then
    tell(due)
  end
end

-- The reply of a script, followed by the reason why sleeping fetchers could not be told.
local function told(reply)
  return silence and {reply, silence} or reply
end
