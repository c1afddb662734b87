-- Moves due messages to the list READY until it has limit entries, in the order of the queue:
-- limit. HELD keeps their due times. Returns the time in us, the next event in ms, and how many
-- there are in READY; 0 while ended leases are to be given back first, and while the queue is paused.
-- Where there is nothing and the queue has shards elsewhere, it is -1.
local limit = tonumber(ARGV[FIRST])
if expire() then
  return {NOW_US, sooner(due_behind(0), first_end()), 0}
end
local SPLIT = KEYS[12]
local found = redis.call('EXISTS', PAUSED, SPLIT, SPLIT) -- SPLIT counts twice
local nothing = found > 1 and -1 or 0
if found % 2 == 1 then
  local paused, resumes = pause_state()
  if paused then
    return {NOW_US, sooner(resumes, first_end()), nothing}
  end
end
merge_ready()
local there = redis.call('LLEN', READY)
local lacking = limit - there
if lacking > 0 then
  local due = redis.call('ZRANGEBYSCORE', DUE, '-inf', NOW, 'WITHSCORES', 'LIMIT', 0, lacking)
  local ms, holds = {}, {}
  for i = 1, #due, 2 do
    ms[#ms + 1] = due[i]
    holds[i], holds[i + 1] = due[i], struct.pack('>d', tonumber(due[i + 1]))
  end
  -- These remove nothing: they prove that the last commands are allowed. Then a server that is out
  -- of memory lets additions pass.
  redis.call('ZREM', DUE, '')
  redis.call('HDEL', HELD, '')
  on('HSET', HELD, holds)
  local ok, failed = pcall(on, 'RPUSH', READY, ms)
  if not ok then
    on('HDEL', HELD, ms)
    error(failed, 0)
  end
  on('ZREM', DUE, ms)
  there = there + #ms
end
return {NOW_US, sooner(due_behind(0), first_end()), there > 0 and there or nothing}
