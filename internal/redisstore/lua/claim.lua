-- Leases up to limit due messages: limit, lease in us, the claim's own name. Returns the time in us,
-- the next event in ms, and for each message member, content, due, attempt, end of the lease. A repeated claim
-- returns what its first try has leased.
local limit, lease, claim = tonumber(ARGV[FIRST]), tonumber(ARGV[FIRST + 1]), ARGV[FIRST + 2]
local out = {int(NOW_US), ''}

local function hand_out(m, due, till)
  local id = id_of(m)
  local rec = redis.call('HGET', MSG, id)
  local gen, untouched = gens(id)
  out[#out + 1] = m
  out[#out + 1] = content_of(rec)
  out[#out + 1] = int(due)
  out[#out + 1] = gen + 1 - untouched
  out[#out + 1] = int(till)
end

if RETRY then
  local all = redis.call('HGETALL', HELD)
  for i = 1, #all, 2 do
    if string.sub(all[i + 1], 9) == claim and holds(all[i]) then
      hand_out(all[i], held_due(all[i]), tonumber(redis.call('ZSCORE', LEASES, all[i])))
    end
  end
end

if #out == 2 then
  expire(limit + 100)
  local ready = redis.call('ZRANGEBYSCORE', DUE, '-inf', NOW, 'WITHSCORES', 'LIMIT', 0, limit)
  local till = after(lease)
  for i = 1, #ready, 2 do
    local m, due = ready[i], tonumber(ready[i + 1])
    redis.call('ZREM', DUE, m)
    redis.call('ZADD', LEASES, int(till), m)
    redis.call('HSET', HELD, m, struct.pack('>d', due) .. claim)
    hand_out(m, due, till)
  end
end
out[2] = int(next_event())
return out
