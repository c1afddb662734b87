-- Common to the scripts of this store: the keys and the members. Functions that only some scripts
-- need are in files of their own, since each function that a script begins with costs it time.
--
-- A member is seq (7 bytes) | gen (4 bytes) | packed id. seq is the push order. gen counts how
-- often the message came back or was moved, so that no lease has the member of an earlier one. A
-- member in LEASES is most of the lease's token.
local DUE, MSG, LEASES, HELD, GENS, DEAD, GRAVES, SEQ, READY, UNIQUE =
  KEYS[1], KEYS[2], KEYS[3], KEYS[4], KEYS[5], KEYS[6], KEYS[7], KEYS[8], KEYS[9], KEYS[10]
local CHANNEL, TRIGGER = ARGV[3], ARGV[4]
local FIRST = 5 -- the first argument of the script's own

local function id_of(m)
  return string.sub(m, 12)
end

-- Calls a command on some values, if there are any. No call has more than some thousands, the most
-- that Lua can pass.
local function on(command, key, values)
  if #values > 0 then
    return named(command, redis.pcall(command, key, unpack(values)))
  end
end
