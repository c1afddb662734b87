-- Puts a message that was handed out back, under its next member. The caller has taken the
-- old one out, so that a server that is out of memory lets this write pass.
local function put_back(m, due, untouched)
  local id = id_of(m)
  local gen, spared = gens(id)
  gen = gen + 1
  if untouched then
    spared = spared + 1
  end
  redis.call('HSET', GENS, id, struct.pack('>I4I4', gen, spared))
  local back = member(seq_of(m), gen, id)
  redis.call('ZADD', DUE, int(due), back)
  return back
end

-- Ends a lease; returns the message's due time, or nil where there was no such lease. An entry left
-- by a claim that lost belongs to no message any more, and only goes away.
local function end_lease(m)
  if redis.call('ZREM', LEASES, m) == 0 then
    return nil
  end
  local v = redis.call('HGET', HELD, m)
  redis.call('HDEL', HELD, m)
  if not (v and certain(v)) and current(id_of(m)) ~= m then
    return nil
  end
  return v and due_in(v) or NOW
end

-- Gives back what up to limit ended leases held.
local function expire(limit)
  local ended = redis.call('ZRANGEBYSCORE', LEASES, '-inf', int(NOW), 'LIMIT', 0, limit)
  for _, m in ipairs(ended) do
    local due = end_lease(m)
    if due then
      put_back(m, due, false)
    end
  end
end
