-- Reserves n numbers and returns the one before the first. SEQ goes away with the last message. It
-- begins at the server's microseconds, given clock or not, so that no member of a later message is
-- that of an earlier one of its id.
local function reserve(n)
  local last = named('INCRBY', redis.pcall('INCRBY', SEQ, n))
  if last == n then
    last = (GIVEN_NOW == '' and NOW_US or server_clock()) + n
    named('SET', redis.pcall('SET', SEQ, int(last)))
  end
  return last - n
end

-- Writes, and changes nothing. WAIT waits for the last write of its connection; a push that finds its
-- message there has none, and another connection may have stored that a moment ago.
local function touch()
  if redis.pcall('EXISTS', SEQ) == 1 then -- else all messages are done
    redis.pcall('INCRBY', SEQ, 0)
  end
end

-- Messages of more bytes are read one by one.
local HEAVY = 16 * 1024

local pack = struct.pack

-- The seq that has a number. Odd ones are of heavy messages.
local function seq(n, size)
  return pack('>I7', 2 * n + (size > HEAVY and 1 or 0))
end
