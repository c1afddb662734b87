-- Makes leases end in so many us: lease, then for each message its key and the lease's stamp.
-- Returns the end of each in ms, or 0 where the lease is lost.
local till = after(tonumber(ARGV[FIRST]))
local ends, bytes = {}, 0

local function move(key, v)
  local m = string.sub(v, member_at(v))
  if not ENVELOPE and not redis.call('ZSCORE', TIMES, m) then
    return false
  end
  prove()
  if not ENVELOPE then
    set_due(m, till + GRACE)
  end
  redis.call('ZADD', LEASES, int(till), key)
  commit()
  if not ENVELOPE then
    announce(m, till + GRACE)
  end
  return true
end

for i = FIRST + 1, #ARGV, 2 do
  if stops(ends, 2 * bytes) then
    break
  end
  local v = given(ARGV[i], ARGV[i + 1])
  bytes = v and #v or 0
  ends[#ends + 1] = v and move(ARGV[i], v) and int(till) or '0'
end
return told(ends)
