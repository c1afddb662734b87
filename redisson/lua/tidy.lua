-- Deletes the keys of this package when there are no messages. Where the user may not, the script
-- has done its work all the same.
local function tidy()
  if redis.pcall('EXISTS', TIMES, LEASES, DEAD, QUARANTINE, DEST) == 0 then
    redis.pcall('DEL', SEQ, STATES, HANDED, PAYLOADS, INDEX, HELD, GRAVES)
  end
end
