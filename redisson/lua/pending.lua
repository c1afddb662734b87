-- Lists the messages in TIMES, by due time: how many to pass over, how many. Returns how many were
-- passed over where the next page begins, or -1 where there is no more, and for each key, due time,
-- origin, attempts, member; the key is empty for an unreadable one. Leased messages are left out. A
-- page ends when the script has had its time.
local out = {}
local from, n = tonumber(ARGV[FIRST]), tonumber(ARGV[FIRST + 1])
local last = math.min(redis.call('ZCARD', TIMES), from + n)
while from < last and (#out == 0 or not spent()) do
  local page = redis.call('ZRANGE', TIMES, from, math.min(from + 10, last) - 1, 'WITHSCORES')
  for i = 1, #page, 2 do
    local m, due = page[i], tonumber(page[i + 1])
    if not leased(m) then
      local msg = parse(m, due) or {key = '', due = due, origin = due, attempts = 0}
      recall(msg, redis.call('HGET', STATES, msg.key))
      out[#out + 1] = msg.key
      out[#out + 1] = int(due)
      out[#out + 1] = int(msg.origin)
      out[#out + 1] = msg.attempts
      out[#out + 1] = m
    end
    from = from + 1
    if i > 1 and spent(#m) then
      break
    end
  end
end
return {from < redis.call('ZCARD', TIMES) and from or -1, out}
