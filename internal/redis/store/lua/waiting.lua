-- Returns the member of a message that waits, or nil and the reason: NONE or HELD. Gives it back
-- first if its lease has ended, which counts as an attempt.
local function waiting(id)
  local m = current(id)
  if not m then
    return nil, 'NONE'
  end
  if redis.call('ZSCORE', DUE, m) then
    return m
  end
  local v = redis.call('HGET', HELD, m)
  if v and moved(v) then
    redis.call('LREM', READY, 1, '') -- no message: proves that take_out may remove
    return m
  end
  if not redis.call('ZSCORE', LEASES, m) then
    return nil, 'NONE'
  end
  if holds_all({m})[1] then
    return nil, 'HELD'
  end
  local due, seq = due_after(m, v)
  if not due then
    return nil, 'NONE'
  end
  prove_release()
  local back = put_back({m}, {due}, {}, {seq})[1]
  release({m})
  return back
end

-- Takes a member out of where it waits. An entry of READY without one of HELD is not handed out, so
-- HELD goes first.
local function take_out(m)
  if redis.call('ZREM', DUE, m) == 0 then
    redis.call('HDEL', HELD, m)
    redis.call('LREM', READY, 1, m)
  end
end
