-- PAUSED, the last key, is there while the queue is paused. It has the end of the pause in ms, or 0.
local PAUSED = KEYS[#KEYS]

-- Returns whether the queue is paused, and the end of the pause in ms, if it has one. The key expires
-- by the server's clock only: by a given clock, a pause that has ended is removed here. Scripts ask
-- EXISTS first, so that only a queue that is paused takes the right to GET.
local function pause_state()
  local till = redis.call('GET', PAUSED)
  till = till and (tonumber(till) or 0)
  if till and not (till >= 0) then -- negative, or nan: written by hand
    till = 0
  end
  if till and till > 0 and till <= NOW then
    redis.pcall('UNLINK', PAUSED)
    till = nil
  end
  return till and true or false, till ~= 0 and till or nil
end
