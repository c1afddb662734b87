local function hold(msg, mark)
  local key = renamed(msg) and msg.key or ''
  return mark .. struct.pack('>ddI4I2I2', msg.due, msg.origin, msg.attempts + 1, #key, msg.n) .. key .. msg.member
end

-- Removes the lease of a key, and commits. An entry of LEASES without one of HELD is no lease, so
-- HELD goes first.
local function forget_lease(key)
  redis.call('HDEL', HELD, key)
  commit()
  redis.call('ZREM', LEASES, key)
end

-- Ends the lease of a message that was put elsewhere, and commits. Without its stand-in a lease
-- holds nothing, so that goes first.
local function end_lease(msg)
  if not ENVELOPE then
    redis.call('ZREM', TIMES, msg.member)
    commit()
  end
  forget_lease(msg.key)
  if renamed(msg) then
    redis.call('HDEL', STATES, prefix_of(msg))
  end
end

-- Gives a leased message back, and commits. The stand-in becomes the member that waits.
local function give_back(msg, due, attempts)
  put_back(msg, due, attempts)
  forget_lease(msg.key)
end

-- The message under the lease of a key that has v in HELD; nil where Java has had it, and then the
-- lease is forgotten.
local function leased_message(key, v)
  local msg = v and held(key, v)
  if msg and (ENVELOPE or redis.call('ZSCORE', TIMES, msg.member)) then
    return msg
  end
  forget_lease(key)
  if msg and renamed(msg) then
    redis.call('HDEL', STATES, prefix_of(msg))
  end
end

-- The message of a lease that is in force, or nil. Where Java has had it, the lease stays until its
-- end, so that a repeated script finds it too.
local function message_of(key, mark)
  local v = given(key, mark)
  local msg = v and held(key, v)
  return msg and (ENVELOPE or redis.call('ZSCORE', TIMES, msg.member)) and msg or nil
end
