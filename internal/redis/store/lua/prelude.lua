-- Common to all scripts: what the keys are called, the clock, and what members are. What only some need is in files of its
-- own, since each function that a script begins with costs it time.
--
-- A member is seq (7 bytes) | gen (4 bytes) | packed id. seq is the push order. gen counts how
-- often the message came back or was moved, so that no lease has the member of an earlier one, and who
-- saw it due before sees another member since: a member in LEASES is most of the lease's token.
local DUE, MSG, LEASES, HELD, GENS, DEAD, GRAVES, SEQ, READY, UNIQUE =
  KEYS[1], KEYS[2], KEYS[3], KEYS[4], KEYS[5], KEYS[6], KEYS[7], KEYS[8], KEYS[9], KEYS[10]
local GIVEN_NOW, CHANNEL, TRIGGER = ARGV[1], ARGV[3], ARGV[4]

-- How many us ago the first try may have run whose reply was lost; 0 in a first try.
local AGE = tonumber(ARGV[2])
local RETRY = AGE > 0
local FIRST = 5 -- the first argument of the script's own

-- Returns the reply of a command that was called by pcall. The error names the command, as the server's does not where the user may not
-- use it. It keeps the code that it begins with, which clients go by; before Redis 7 an error is a text.
local function named(command, reply)
  if type(reply) == 'table' and reply.err then
    local text = reply.err .. ' (' .. command .. ')'
    error(redis.REDIS_VERSION_NUM and {err = text} or text, 0)
  end
  return reply
end

-- The server's clock in microseconds.
local function server_clock()
  local t = named('TIME', redis.pcall('TIME'))
  return tonumber(t[1]) * 1000000 + tonumber(t[2])
end

local NOW_US = GIVEN_NOW ~= '' and tonumber(GIVEN_NOW) or server_clock()
local NOW = math.floor(NOW_US / 1000)

-- The first whole millisecond at which so many microseconds have passed. What is due at once is due in
-- this one.
local function after(us)
  if us == 0 then
    return NOW
  end
  return math.ceil((NOW_US + us) / 1000)
end

-- Due by a due time in milliseconds where there is one, else by a delay in microseconds.
local function due_of(due, delay)
  if due ~= '' then
    return tonumber(due)
  end
  return after(tonumber(delay))
end

-- tostring would write 1.7e+15.
local function int(n)
  return string.format('%.0f', n)
end

local function id_of(m)
  return string.sub(m, 12)
end

-- Calls a command on some values, if there are any. No call has more than some thousands: Lua can pass no more.
local function on(command, key, values)
  if #values > 0 then
    return named(command, redis.pcall(command, key, unpack(values)))
  end
end
