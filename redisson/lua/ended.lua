-- Gives back the messages of ended leases, for a part of the script's time, and remembers whether
-- there may be more.
local more_ended = false
local EXPIRED = 100

local function expire()
  local keys = redis.call('ZRANGEBYSCORE', LEASES, '-inf', int(NOW), 'LIMIT', 0, EXPIRED)
  local bytes = 0
  for i, key in ipairs(keys) do
    if i > 1 and spent(bytes, BUDGET / 2) then
      more_ended = true
      return
    end
    local v = redis.call('HGET', HELD, key)
    local msg = leased_message(key, v)
    if msg then
      give_back(msg, msg.due, msg.attempts)
    end
    bytes = v and 4 * #v or 0
  end
  more_ended = #keys == EXPIRED
end

-- Whether a member of TIMES is there for a lease.
local function leased(m)
  local _, n = header(m)
  if ENVELOPE or not n then
    return false
  end
  local key = string.sub(m, 1, n)
  if redis.call('HEXISTS', HELD, key) == 1 then
    return true
  end
  local state = redis.call('HGET', STATES, key)
  return state and string.sub(state, 1, 1) == 'A' and redis.call('HEXISTS', HELD, string.sub(state, 2)) == 1
end

-- Puts an unreadable entry aside: kind T from TIMES alone, I from TIMES and INDEX, D from DEST.
local function quarantine(kind, what, due)
  prove()
  write({'ZREM', QUARANTINE, kind .. what}, 'ZADD', QUARANTINE, int(due), kind .. what)
end
