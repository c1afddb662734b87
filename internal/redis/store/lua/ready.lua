-- Puts messages that a mover left in READY back into DUE where one in DUE may be before the last of
-- them: READY is handed out first, so that the one in DUE would come too late.
local function merge_ready()
  local last = redis.call('LINDEX', READY, -1)
  local head = last and tonumber(redis.call('ZRANGE', DUE, 0, 0, 'WITHSCORES')[2])
  local v = head and redis.call('HGET', HELD, last)
  if not head or head > NOW or v and moved(v) and due_in(v) < head then
    return
  end
  -- These remove nothing: they prove that the last commands are allowed. Then a server that is out
  -- of memory lets additions pass.
  redis.call('LTRIM', READY, 0, -1)
  redis.call('HDEL', HELD, '')
  redis.call('ZREM', LEASES, '')
  repeat
    local ms, entries, back = redis.call('LRANGE', READY, 0, 999), {}, {}
    for i, v in ipairs(on('HMGET', HELD, ms) or {}) do
      if v and moved(v) then
        back[#back + 1] = ms[i]
        entries[#entries + 1], entries[#entries + 2] = int(due_in(v)), ms[i]
      end
    end
    on('ZADD', DUE, entries)
    on('ZREM', LEASES, back) -- what claims without a script left that lost: it would be the end of the next one's lease
    on('HDEL', HELD, back) -- before LTRIM: with an entry that says READY a claim without a script would hold no lease
    redis.call('LTRIM', READY, #ms, -1)
  until #ms < 1000
end
