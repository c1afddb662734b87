-- Holds messages that are not cancelled: 1 for each that is, else 0. ARGV[3] is for how many ms, then come stamp and token of each.
local MS = tonumber(ARGV[3])

local function take(key, stamp, token)
  local r = redis.call('HMGET', key, 'c', 's', 't:' .. token)
  local c, s, held = tonumber(r[1] or '0'), tonumber(r[2] or '0'), tonumber(r[3] or '0')
  if c > 0 and stamp <= c then
    return 1
  end
  redis.call('HSET', key, 't:' .. token, int(math.max(held, NOW + MS * 1000)), 's', int(math.max(s, stamp)))
  lasts(key, MS)
  return 0
end

local out = {}
for i = FIRST, #KEYS do
  local a = 4 + 2 * (i - FIRST)
  out[#out + 1] = take(KEYS[i], tonumber(ARGV[a]), ARGV[a + 1])
end
return out
