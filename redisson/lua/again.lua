-- Where the message of a lease is that is not in force: E in this lease, which has ended or Java has
-- had it; L in another one; W it waits; D it is dead; or nil. Then for L and W when it is due, and
-- whether it was handed out before. If not, it was pushed or redriven after the lease.
local function whereabouts(key, mark)
  local v = redis.call('HGET', HELD, key)
  if v then
    local due, _, attempts = struct.unpack('>ddI4', v, 25)
    return string.sub(v, 1, STAMP) == mark and 'E' or 'L', due, attempts > 1
  end
  local state = redis.call('HGET', STATES, key)
  local kind = state and string.sub(state, 1, 1) or nil
  if kind == 'W' then
    local due, _, attempts = struct.unpack('>ddI4', state, 2)
    return kind, due, attempts > 0
  end
  return kind
end

-- The outcome of settling a lease that is not in force: 0 lost, or for a repeated script also 1, the
-- first try has done it, or 2, unknown. tells gives it by where the message is, or nil. Then,
-- or where the message is nowhere, the first try has done it, unless the lease could have ended.
local function lost(key, mark, tells)
  if not RETRY then
    return 0
  end
  local where, due, before = whereabouts(key, mark)
  if where == 'E' then
    return 0 -- the first try would have taken it out
  end
  return where and tells(where, due, before) or NOW < first_end(mark) and 1 or 2
end
