-- Stores messages: for each id, content, due time in ms or '', delay in us. Idempotent by id: one that
-- is there stays. Returns an outcome for each: 1 stored, 0 a message of that id is there, 2 unknown: the
-- first try may have stored one that was due and done since, which must not come again.
local outcomes = {}
local earliest, first
for i = FIRST, #ARGV, 4 do
  local id, content = ARGV[i], ARGV[i + 1]
  local rec = redis.call('HGET', MSG, id)
  if rec then
    -- A repeated push finds what its first try has stored.
    outcomes[#outcomes + 1] = (RETRY and content_of(rec) == content) and 1 or 0
  elseif RETRY and due_of(ARGV[i + 2], ARGV[i + 3]) - math.ceil(AGE / 1000) <= NOW then
    outcomes[#outcomes + 1] = 2
  else
    local due = due_of(ARGV[i + 2], ARGV[i + 3])
    local seq = next_seq()
    local m = member(seq, 0, id)
    redis.call('HSET', MSG, id, seq .. content)
    redis.call('ZADD', DUE, int(due), m)
    set_trigger(id, due)
    if not first or due < earliest then
      earliest, first = due, m
    end
    outcomes[#outcomes + 1] = 1
  end
end
if first then
  announce(first, earliest)
end
return outcomes
