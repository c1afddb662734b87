-- Counts: scheduled, ready, in flight, dead, quarantined, head due in ms or -1.
local function head_due()
  local item = taker().peek()
  local head = item and (item.msg and item.msg.due or NOW) or math.huge
  for from = 0, redis.call('ZCARD', TIMES) - 1, 100 do
    local some = redis.call('ZRANGE', TIMES, from, from + 99, 'WITHSCORES')
    for i = 1, #some, 2 do
      if not leased(some[i]) then
        return math.min(head, tonumber(some[i + 1]))
      end
    end
  end
  return head
end

expire()
local due = redis.call('ZCOUNT', TIMES, '-inf', int(NOW))
local in_flight = redis.call('ZCARD', LEASES)
local head = head_due()
return {
  math.max(redis.call('ZCARD', TIMES) - due - (ENVELOPE and 0 or in_flight), 0),
  due + redis.call('LLEN', DEST),
  in_flight,
  redis.call('ZCARD', DEAD),
  redis.call('ZCARD', QUARANTINE),
  head < math.huge and int(head) or '-1',
}
