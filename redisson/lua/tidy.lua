-- Deletes the keys of this package when there are no messages.
local function tidy()
  if redis.call('EXISTS', TIMES, LEASES, DEAD, QUARANTINE, DEST) == 0 then
    redis.call('DEL', SEQ, STATES, HANDED, PAYLOADS, INDEX, HELD, GRAVES)
  end
end
