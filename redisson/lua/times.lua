-- Sets when a member is due, whether or not it is in TIMES.
local function set_due(m, due)
  local was = redis.call('ZSCORE', TIMES, m)
  write(was and {'ZADD', TIMES, was, m} or {'ZREM', TIMES, m}, 'ZADD', TIMES, int(due), m)
end

-- Why sleeping fetchers could not be told. The message is stored all the same.
local silence

local function hint(command, ...)
  local reply = redis.pcall(command, ...)
  if type(reply) == 'table' and reply.err then
    silence = command .. ': ' .. reply.err
    return {}
  end
  return reply
end

-- Tells sleeping fetchers, and Java's processes, of a member that is now the first.
local function announce(m, due)
  if m and hint('ZRANGE', TIMES, 0, 0)[1] == m then
    hint('PUBLISH', CHANNEL, int(due))
  end
end

-- The same for several members of one due time. Returns when the first member is due.
local function announce_time(due)
  local first = tonumber(hint('ZRANGE', TIMES, 0, 0, 'WITHSCORES')[2])
  if first == due then
    hint('PUBLISH', CHANNEL, int(due))
  end
  return first
end

-- The reply of a script, followed by the reason why sleeping fetchers could not be told.
local function told(reply)
  return silence and {reply, silence} or reply
end
