-- Reserves n numbers and returns the one before the first. SEQ goes away with the last message. It
-- begins at the server's microseconds, given clock or not, so that no number comes twice.
local function reserve(n)
  local last = redis.call('INCRBY', SEQ, n)
  if last == n then
    last = BEGAN + n
    redis.call('SET', SEQ, int(last))
  end
  return last - n
end
