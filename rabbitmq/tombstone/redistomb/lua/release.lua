-- Ends holds. A record that says nothing else is dropped. From ARGV[4] on come stamp and token of each.
local out = {}
for i = FIRST, #KEYS do
  redis.call('HDEL', KEYS[i], 't:' .. ARGV[5 + 2 * (i - FIRST)])
  if redis.call('HLEN', KEYS[i]) == 1 and redis.call('HEXISTS', KEYS[i], 's') == 1 then
    redis.call('DEL', KEYS[i])
  end
  out[#out + 1] = 0
end
return out
