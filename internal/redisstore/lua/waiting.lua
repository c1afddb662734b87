-- Takes a message that waits out of where it waits. Returns its member, or nil and the reason:
-- NONE or HELD.
local function take_waiting(id)
  local m = current(id)
  if not m then
    return nil, 'NONE'
  end
  if redis.call('ZSCORE', LEASES, m) then
    if holds_all({m})[1] then
      return nil, 'HELD'
    end
    local back = put_back(m, end_lease(m) or NOW, false) -- the ended lease counts as an attempt
    redis.call('ZREM', DUE, back)
    return back
  end
  if redis.call('ZREM', DUE, m) == 1 then
    return m
  end
  if redis.call('LREM', READY, 1, m) == 1 then
    redis.call('HDEL', HELD, m)
    return m
  end
  return nil, 'NONE'
end
