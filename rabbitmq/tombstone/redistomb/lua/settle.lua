-- Ends holds of what is done or dead. ARGV[3] is for how many ms that is remembered, then come stamp and token of each.
local MS = tonumber(ARGV[3])

-- How many fields of a record are no hold.
local function facts(key)
  local n = 0
  for _, f in ipairs({'c', 'd', 's'}) do
    n = n + redis.call('HEXISTS', key, f)
  end
  return n
end

local function settle(key, stamp, token)
  redis.call('HDEL', key, 't:' .. token)
  local r = redis.call('HMGET', key, 'c', 'd')
  -- What was never enrolled is settled too.
  redis.call('HSET', key, 'd', int(math.max(tonumber(r[2] or '0'), stamp, 1)))
  if not r[1] and redis.call('HLEN', key) == facts(key) then
    redis.call('PEXPIRE', key, int(MS)) -- a long lease does not make it longer
  else
    lasts(key, MS)
  end
end

local out = {}
for i = FIRST, #KEYS do
  local a = 4 + 2 * (i - FIRST)
  settle(KEYS[i], tonumber(ARGV[a]), ARGV[a + 1])
  out[#out + 1] = 0
end
return out
