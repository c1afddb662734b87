-- Counts: scheduled, ready, in flight, dead, quarantined, head due in ms or -1, for how many ms it
-- has been due, how many are due up to each of some times from now, in ms, and after the one
-- before, the end of the pause in ms, 0 for one without an end, -1 without a pause, and no activity.

-- The due time of the first in TIMES that is there for no lease, where those that are have so many
-- before it that looking at each takes long: by how many are due at a time, and how many of these
-- for leases.
local function due_behind_leases(first, last)
  while first < last do
    local middle = math.floor((first + last) / 2)
    local score = tonumber(redis.call('ZRANGE', TIMES, middle, middle, 'WITHSCORES')[2])
    local there = redis.call('ZCOUNT', TIMES, '-inf', int(score))
    if there > redis.call('ZCOUNT', LEASES, '-inf', int(score - GRACE)) then
      last = middle
    else
      first = middle + 1
    end
  end
  return tonumber(redis.call('ZRANGE', TIMES, first, first, 'WITHSCORES')[2])
end

local function head_due(waiting)
  local item = taker(redis.call('LLEN', DEST)).peek()
  local head = item and (item.msg and item.msg.due or NOW) or math.huge
  local from, page, left = 0, 1, waiting > 0 and redis.call('ZCARD', TIMES) or 0
  while from < left do
    local some = redis.call('ZRANGE', TIMES, from, from + page - 1, 'WITHSCORES')
    for i = 1, #some, 2 do
      if not leased(some[i]) then
        return math.min(head, tonumber(some[i + 1]))
      end
    end
    from, page = from + page, next_page(page, bytes_of(some, 2))
    if from < left and spent(PAGE_BYTES) then
      return math.min(head, due_behind_leases(from, left - 1))
    end
  end
  return head
end

-- How many leases have ended before a time.
local function ended(before)
  return redis.call('ZCOUNT', LEASES, '-inf', int(before))
end

expire()
local due = redis.call('ZCOUNT', TIMES, '-inf', int(NOW))
local waiting_again = ended(NOW) -- those of them that expire had no time for
local in_flight = redis.call('ZCARD', LEASES) - waiting_again
local standing_in = 0 -- members of TIMES that represent leases, and are not due
if not ENVELOPE then
  local due_again = ended(NOW - GRACE)
  standing_in = in_flight + waiting_again - due_again
  waiting_again = waiting_again - due_again
end
local scheduled = math.max(redis.call('ZCARD', TIMES) - due - standing_in, 0)
local head = waiting_again > 0 and NOW or head_due(scheduled + due)
local out = {
  scheduled,
  due + waiting_again + redis.call('LLEN', DEST),
  in_flight,
  redis.call('ZCARD', DEAD),
  redis.call('ZCARD', QUARANTINE),
  head < math.huge and int(head) or '-1',
  head < math.huge and int(math.max(NOW - head, 0)) or 0,
}
local last = NOW
for i = FIRST, #ARGV do
  local bound = NOW + tonumber(ARGV[i])
  local n = redis.call('ZCOUNT', TIMES, '(' .. int(last), int(bound))
  if not ENVELOPE then
    n = n - redis.call('ZCOUNT', LEASES, '(' .. int(last - GRACE), int(bound - GRACE))
  end
  out[#out + 1] = n
  last = bound
end
local paused, resumes = false, nil
if redis.call('EXISTS', PAUSED) == 1 then
  paused, resumes = pause_state()
end
out[#out + 1] = int(paused and (resumes or 0) or -1)
out[#out + 1] = {}
return out
