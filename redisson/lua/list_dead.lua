-- Lists dead letters: the cursor, how many. Returns for each order of death, key, grave.
local out = {}
local page = redis.call('ZRANGEBYSCORE', DEAD, '(' .. ARGV[FIRST], '+inf', 'WITHSCORES', 'LIMIT', 0, ARGV[FIRST + 1])
for i = 1, #page, 2 do
  out[#out + 1] = int(tonumber(page[i + 1]))
  out[#out + 1] = page[i]
  out[#out + 1] = redis.call('HGET', GRAVES, page[i])
end
return out
