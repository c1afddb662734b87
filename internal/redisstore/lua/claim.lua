-- Leases up to limit due messages: limit, lease in us, the claim's own name. Returns the time in us,
-- the next event in ms, and the deliveries. A repeated claim returns what its first try has leased.
-- Messages that a mover left in READY come first.
local limit, till, claim = tonumber(ARGV[FIRST]), after(tonumber(ARGV[FIRST + 1])), ARGV[FIRST + 2]
local out = {int(NOW_US), ''}
if not (RETRY and claimed_before(out, claim)) then
  expire(limit + 100)
  limit = lease_ready(out, limit, till, claim)
  local ready = redis.call('ZRANGEBYSCORE', DUE, '-inf', NOW, 'WITHSCORES', 'LIMIT', 0, limit)
  for i = 1, #ready, 2 do
    redis.call('ZREM', DUE, ready[i])
    if not lease(out, ready[i], tonumber(ready[i + 1]), till, claim) then
      break
    end
  end
end
out[2] = int(next_event())
return out
