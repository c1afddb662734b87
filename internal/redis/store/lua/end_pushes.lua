-- Has the store of a shard take no new ids. The argument is after how many ms that is forgotten, 0 for never.
-- Returns for how many ms it has taken none.
local NOTE, forget, now = KEYS[1], tonumber(ARGV[FIRST]), math.floor(server_clock() / 1000)
local since = tonumber(string.match(redis.call('GET', NOTE) or '', '^ended (%d+)$')) or now
if forget > 0 then
  redis.call('SET', NOTE, 'ended ' .. int(since), 'PX', forget)
else
  redis.call('SET', NOTE, 'ended ' .. int(since))
end
return now - since
