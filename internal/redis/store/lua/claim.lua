-- Leases up to limit due messages. A fourth argument leaves out those that are due later, in ms, and a fifth is
-- ROOM. A repeated claim returns the messages that its first try leased.
-- Messages that a mover left in READY come first, unless others are due before. While ended leases
-- are to be given back it leases none, and the next event is now. While the queue is paused it leases
-- none either, and what is due is no event before the end of the pause. Where nothing is leased and
-- the queue has shards elsewhere, the end of the leases is -1.
-- So many messages are read with their due times, which Redis is slow at writing. Where all that the claim
-- may have are due at once, they are read without.
local FEW = 16

local function hand_out_due()
  local latest, most = math.min(NOW, tonumber(ARGV[FIRST + 3] or NOW)), limit
  local ms, dues, n = {}, {}, 0
  local score, due
  repeat
    local page = redis.call('ZRANGEBYSCORE', DUE, '-inf', latest, 'WITHSCORES', 'LIMIT', n, n == 0 and math.min(most, FEW) or most - n)
    for i = 1, #page, 2 do
      if page[i + 1] ~= score then
        score = page[i + 1]
        due = tonumber(score)
      end
      n = n + 1
      ms[n], dues[n] = page[i], due
    end
    local more = n == FEW and n < most and #page > 0
    if more and page[2] == score and redis.call('ZCOUNT', DUE, score, score) >= most then
      due_taken = hand_out_first(redis.call('ZRANGE', DUE, 0, most - 1), nil, due)
      return
    end
  until not more
  due_taken = hand_out_first(ms, dues)
end

local ends_first = first_end()

-- Gives back the messages of ended leases. Returns whether none is left.
local function none_ended_left()
  if not ends_first or ends_first > NOW then
    return true
  end
  local more = expire()
  ends_first = first_end()
  return not more
end

local fresh = not (RETRY and claimed_before()) and none_ended_left()
local paused, resumes = false, nil
if fresh then
  if redis.call('EXISTS', READY, GENS, PAUSED) == 0 then -- mostly
    came_back = false
  else
    local there = redis.call('EXISTS', PAUSED, GENS, GENS) -- GENS counts twice
    came_back = there > 1
    if there % 2 == 1 then
      paused, resumes = pause_state()
    end
    if not paused then
      merge_ready()
      hand_out_ready()
    end
  end
  if not paused then
    hand_out_due()
  end
end

-- These are read before the messages are leased, since that may not be allowed.
local head = due_behind(due_taken)
if paused then
  head = resumes
end
local later = TRIGGER ~= '' and head and head > NOW
local left = later and redis.call('PTTL', TRIGGER)
local failed = fresh and lease_all()
if failed then
  return failed
end
out[2] = sooner(head, #ends > 0 and sooner(ends_first, till) or ends_first)

-- Sees that the trigger goes when the head is due, or before. Where messages are left that are due
-- already, it goes or has gone, and wakes all others; they leave none, or see to it in their turn.
-- A server that is out of memory refuses: then the sweep looks.
if later and (left <= 0 or left > head - NOW) then
  redis.pcall('SET', TRIGGER, '1', 'PX', head - NOW)
end
if #out == 3 and redis.call('EXISTS', KEYS[12]) == 1 then
  out[3] = -1
end
return out
