-- Milliseconds at which something happens next, or -1; and at which the first message is due, or nil.
local function next_event()
  local head = tonumber(redis.call('ZRANGE', DUE, 0, 0, 'WITHSCORES')[2])
  local till = tonumber(redis.call('ZRANGE', LEASES, 0, 0, 'WITHSCORES')[2])
  return math.min(head or till or -1, till or head or -1), head
end
