-- Milliseconds at which something happens next, or -1.
local function next_event()
  local head = redis.call('ZRANGE', DUE, 0, 0, 'WITHSCORES')[2]
  local till = redis.call('ZRANGE', LEASES, 0, 0, 'WITHSCORES')[2]
  if not head and not till then
    return -1
  end
  return math.min(tonumber(head or till), tonumber(till or head))
end
