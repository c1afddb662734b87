-- Lists dead letters: the cursor, how many, '1' for their ids alone. Returns the cursor of the next
-- page, or '' where there are no more, and for each the order of death, key, death. A script stops
-- at so many bytes that it reads.
local limit, ids_alone = tonumber(ARGV[FIRST + 1]), ARGV[FIRST + 2] == '1'
local room = 8 * 1024 * 1024
local out = {''}
local page = redis.call('ZRANGEBYSCORE', DEAD, '(' .. ARGV[FIRST], '+inf', 'WITHSCORES', 'LIMIT', 0, limit + 1)
for i = 1, #page, 2 do
  if i > 2 * limit or room <= 0 then
    out[1] = int(tonumber(page[i - 1]))
    break
  end
  local death = redis.call('HGET', GRAVES, page[i]) or ''
  room = room - #death
  out[#out + 1] = int(tonumber(page[i + 1]))
  out[#out + 1] = page[i]
  out[#out + 1] = ids_alone and string.sub(death, 1, 32) or death
end
return out
