-- Common to the scripts of all stores: the clock, repeated scripts, and due times.
local GIVEN_NOW = ARGV[1]

-- Returns the reply of a command that was called by pcall. An error names the command, since the
-- server names none that the user may not use. The error keeps the code that it begins with, which
-- clients go by; before Redis 7 an error is a text.
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

-- Whether this is a try after one whose reply was lost, and how many us ago that may have run at
-- most.
local RETRY = ARGV[2] ~= '0'
local AGE = RETRY and NOW_US - tonumber(ARGV[2]) or 0

-- The first whole millisecond at which so many microseconds have passed. A message that is due at
-- once is due in this one.
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
