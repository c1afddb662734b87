-- Stamps messages. A record that is there notes that something waits.
local s = int(stamp())
local out = {}
for i = FIRST, #KEYS do
  if redis.call('EXISTS', KEYS[i]) == 1 then
    redis.call('HSET', KEYS[i], 's', s)
  end
  out[#out + 1] = s
end
return out
