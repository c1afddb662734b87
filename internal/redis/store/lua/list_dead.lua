-- Lists dead letters: the cursor, how many, '1' for ids alone. Returns the cursor of the next page,
-- or '' where there are no more, and for each order of death, id, content, death. A reply stops at
-- so many bytes of content. Entries that a stop left without a message are not listed: a page may
-- be empty though there are more.
local limit, ids_alone = tonumber(ARGV[FIRST + 1]), ARGV[FIRST + 2] == '1'
local room = 8 * 1024 * 1024
local MORE = 100 -- so many more entries are looked at, for those that are not listed
local out = {''}
local page = redis.call('ZRANGEBYSCORE', DEAD, '(' .. ARGV[FIRST], '+inf', 'WITHSCORES', 'LIMIT', 0, limit + MORE + 1)
for i = 1, #page, 2 do
  if #out > 4 * limit or i > 2 * (limit + MORE) or room <= 0 then
    out[1] = int(tonumber(page[i - 1]))
    break
  end
  local id, rec, death = page[i], '', ''
  if not ids_alone then
    rec, death = redis.call('HGET', MSG, id), redis.call('HGET', GRAVES, id) or ''
  end
  if rec then -- else it was deleted, and a stop left this
    local n = #out
    out[n + 1], out[n + 2], out[n + 3], out[n + 4] = int(tonumber(page[i + 1])), id, string.sub(rec, 8), death
    room = room - #rec
  end
end
return out
