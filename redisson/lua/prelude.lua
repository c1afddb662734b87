-- Common to all scripts of redisson: the names of the keys, and the moves between them.
--
-- DEST, TIMES and INDEX are Redisson's own: due messages, waiting messages with their due times in
-- ms, and waiting messages in the order of offers. A member of TIMES and INDEX is id | length |
-- payload. The other keys are this package's:
--
--   LEASES      keys of leased messages, by the lease's end in ms
--   HELD        for each of these what is leased
--   STATES      for the key of one that waits or is dead: where it is, when TIMES alone does not tell
--   DEAD        keys of dead letters, by order of death; GRAVES has what they were
--   HANDED      which messages were moved to DEST, in its order, and PAYLOADS what each of them has there
--   QUARANTINE  unreadable entries, by due time
--   SEQ         the last number given out
--
-- A message's key is its id, with the length byte where there is one; in an envelope, the id that
-- the envelope has. Its origin is the due time that it was pushed with: the two name it for good.
local DEST, TIMES, INDEX, LEASES, HELD, STATES, DEAD, GRAVES, SEQ, HANDED, PAYLOADS, QUARANTINE =
  KEYS[1], KEYS[2], KEYS[3], KEYS[4], KEYS[5], KEYS[6], KEYS[7], KEYS[8], KEYS[9], KEYS[10], KEYS[11], KEYS[12]
local CHANNEL = ARGV[3]
local ENVELOPE = string.find(ARGV[4], 'e', 1, true) ~= nil
local LISTED = string.find(ARGV[4], 'l', 1, true) ~= nil -- in INDEX too
local FORMAT = ARGV[5] -- of members: 'V1', 'V2' or 'Both'
local FIRST = 7 -- the first argument of the script's own

-- The server's clock in microseconds at the beginning, given clock or not.
local BEGAN = GIVEN_NOW == '' and NOW_US or server_clock()

-- The commands that undo the writes of a step. A step is the part of a script for one message, or
-- for all together. It adds first and removes last. Where a command fails, such as for a user
-- without the right to it, the queue is as it was before the step.
local undo = {}
local server = redis

local function take_back()
  local inverses = undo
  undo = {}
  for i = #inverses, 1, -1 do
    server.pcall(unpack(inverses[i]))
  end
end

-- Ends a step: nothing of it is undone any more.
local function commit()
  undo = {}
end

-- Calls a command. An error ends the script, after the step is undone.
local function call(command, ...)
  local reply = server.pcall(command, ...)
  if type(reply) == 'table' and reply.err then
    take_back()
    named(command, reply)
  end
  return reply
end

local redis = {call = call, pcall = server.pcall, sha1hex = server.sha1hex, error_reply = server.error_reply}

-- Runs a command that the inverse undoes.
local function write(inverse, ...)
  local reply = call(...)
  undo[#undo + 1] = inverse
  return reply
end

-- These remove nothing: they prove that a step may undo its additions and remove old entries. Then
-- a server that is out of memory lets additions pass.
local proven = false

local function prove()
  if not proven then
    redis.call('HDEL', HELD, '')
    redis.call('ZREM', LEASES, '')
    redis.call('LTRIM', INDEX, 0, -1)
    proven = true
  end
end

-- Writing a number as text is slow, and a script has few different ones.
local texts, write_int = {}, int

local function int(n)
  local text = texts[n] or write_int(n)
  texts[n] = text
  return text
end

-- Calls a command on some values, if there are any.
local function on(command, key, values)
  if #values > 0 then
    return redis.call(command, key, unpack(values))
  end
end
