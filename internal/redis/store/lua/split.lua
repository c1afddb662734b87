-- Notes into how many shards a queue is split, in place of its due messages: every other script fails
-- there then. The argument is how many there should be; 1 takes the note away. Returns how many there
-- are; 0 where the queue has messages that are in no shard.
local wanted = ARGV[FIRST]
local there
if redis.call('TYPE', DUE).ok == 'string' then
  there = string.match(redis.call('GET', DUE), '^shards (%d+)$')
elseif wanted ~= '1' and redis.call('EXISTS', unpack(KEYS)) > 0 then
  return 0
end
if wanted == '1' then
  if there then
    redis.call('UNLINK', DUE)
  end
  return 1
end
if not there then
  redis.call('SET', DUE, 'shards ' .. wanted)
end
return tonumber(there or wanted)
