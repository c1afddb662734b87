-- A trigger is a key that expires when a message is due, for who listens to expiries. Without such
-- listeners TRIGGER is empty; else it is what the key begins with.
local function triggers(due)
  return TRIGGER ~= '' and due > NOW
end

-- The value says nothing. Redis has the small numbers once for all keys.
local function set_trigger(id, due)
  if triggers(due) then
    redis.call('SET', TRIGGER .. id, '1', 'PX', int(due - NOW))
  end
end

local function drop_triggers(ids)
  if TRIGGER ~= '' then
    for _, id in ipairs(ids) do
      redis.call('DEL', TRIGGER .. id)
    end
  end
end

-- Tells sleepers of a message that is now the first: when it is due, and whether a trigger will tell then.
local function announce(m, due)
  if m and redis.call('ZRANGE', DUE, 0, 0)[1] == m then
    redis.call('PUBLISH', CHANNEL, int(due) .. (triggers(due) and ' trigger' or ''))
  end
end
