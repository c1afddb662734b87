-- Milliseconds at which something happens next, or -1; and at which the first message is due, or
-- nil.
local function next_event()
  local head = tonumber(redis.call('ZRANGEBYSCORE', DUE, '-inf', '+inf', 'WITHSCORES', 'LIMIT', 0, 1)[2])
  local till = tonumber(redis.call('ZRANGEBYSCORE', LEASES, '-inf', '+inf', 'WITHSCORES', 'LIMIT', 0, 1)[2])
  return math.min(head or till or -1, till or head or -1), head
end
