-- Lists what waits in TIMES, by due time: how many to pass over, how many. Returns for each key, due time, origin,
-- attempts, member; the key is empty for what nobody can read. What is leased is left out.
local out = {}
local from, n = tonumber(ARGV[FIRST]), tonumber(ARGV[FIRST + 1])
local page = redis.call('ZRANGE', TIMES, from, from + n - 1, 'WITHSCORES')
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
end
return {#page / 2, out}
