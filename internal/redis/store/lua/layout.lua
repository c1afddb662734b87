-- Changes the note of a queue's generations of shards. The arguments are the note that is to be
-- changed and the new one, '' for none; or '?' and the first note of a queue, which stays as it is where
-- there is one. A note on a queue that has none has the messages of the queue itself, if any, as the oldest
-- generation. Returns the note that is there then. The third argument is the pause that the newest shards
-- have been given, as PAUSED has it, or '*' where that does not matter. Returns '!', and changes nothing, where the
-- queue has another.
local old, new, pause = ARGV[FIRST], ARGV[FIRST + 1], ARGV[FIRST + 2]
local NOTE, PAUSED = KEYS[11], KEYS[12]
local there = redis.call('GET', NOTE) or ''
if there ~= (old == '?' and '' or old) then
  return there
end
if pause ~= '*' and pause ~= (redis.call('GET', PAUSED) or '') then
  return '!'
end
if new == '' then
  redis.call('UNLINK', NOTE)
else
  local keys = {unpack(KEYS, 1, 10)}
  if there == '' and string.sub(new, 1, 2) ~= '0:' and redis.call('EXISTS', unpack(keys)) > 0 then
    new = '0:1,' .. new
  end
  redis.call('SET', NOTE, new)
end
redis.pcall('PUBLISH', CHANNEL, 0) -- the sleeping handles read it anew
return new
