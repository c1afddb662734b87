-- Leases up to limit due messages. A repeated claim returns the messages that its first try leased.
-- Messages that a mover left in READY come first, unless others are due before. While ended leases
-- are to be given back it leases none, and the next event is now.
local function hand_out_due()
  local page = redis.call('ZRANGEBYSCORE', DUE, '-inf', int(NOW), 'WITHSCORES', 'LIMIT', 0, limit)
  local ms, dues, texts = {}, {}, {}
  for i = 1, #page, 2 do
    local score = page[i + 1]
    local due = texts[score] or int(tonumber(score))
    texts[score] = due
    ms[#ms + 1], dues[#dues + 1] = page[i], due
  end
  due_taken = hand_out_first(ms, dues)
end

local left = TRIGGER ~= '' and redis.call('PTTL', TRIGGER) -- before any write, since it may not be allowed
if not (RETRY and claimed_before()) and not expire() then
  merge_ready()
  hand_out_ready()
  hand_out_due()
  local failed = lease_all()
  if failed then
    return failed
  end
end
local event, head = next_event()
out[2] = int(event)

-- Sees that the trigger goes when the head is due, or before. Where messages are left that are due
-- already, it goes or has gone, and wakes all others; they leave none, or see to it in their turn.
-- A server that is out of memory refuses: then the sweep looks.
if TRIGGER ~= '' and head and head > NOW then
  if left <= 0 or left > head - NOW then
    redis.pcall('SET', TRIGGER, '1', 'PX', int(head - NOW))
  end
end
return out
