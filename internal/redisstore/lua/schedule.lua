-- Stores messages: how many arguments each has, and then for each id, content, due time in ms or '', delay in us,
-- and, as a fifth where any has it, for how many us the id stays taken, or 0. Idempotent by id: one that
-- is there stays. Returns an outcome for each: 1 stored, 0 a message of that id is there or the id is taken, 2 unknown: the
-- first try may have stored one that was due and done since, which must not come again.
local FIELDS = tonumber(ARGV[FIRST])

-- Ids that stay taken. Where there are none, and none is to be, this is not called: it would cost each push.
local function windows()
  local w, opened = {}, 0

  -- Until when an id is taken, in ms, or nil.
  function w.till(id)
    local till = tonumber(redis.call('ZSCORE', UNIQUE, id) or NOW)
    return till > NOW and till or nil
  end

  -- What a push meets whose id is taken, with no message there. The first try may have taken it itself: then its
  -- message has come and gone since.
  function w.refuse(till, us)
    local own = RETRY and us > 0 and till <= after(us) and till >= after(us - AGE)
    return own and 2 or 0
  end

  function w.take(id, us)
    redis.call('ZADD', UNIQUE, int(after(us)), id)
    opened = opened + 1
  end

  -- Drops some ids whose time is over, more than were taken. The key goes with the last of them, by the server's
  -- clock: not where another is given.
  function w.tidy()
    if opened == 0 then
      return
    end
    for _, id in ipairs(redis.call('ZRANGEBYSCORE', UNIQUE, '-inf', NOW, 'LIMIT', 0, 2 * opened)) do
      redis.call('ZREM', UNIQUE, id)
    end
    if GIVEN_NOW == '' then
      local last = redis.call('ZREVRANGE', UNIQUE, 0, 0, 'WITHSCORES')[2]
      redis.call('PEXPIRE', UNIQUE, int(tonumber(last) - NOW))
    end
  end

  return w
end

local unique = (FIELDS > 4 or redis.call('EXISTS', UNIQUE) == 1) and windows()

-- Whether a repeated push finds what its first try may have stored: the same content, and while it waits for the first time a due time
-- that this try's delay had then.
local function own(id, rec, content, due)
  if string.sub(rec, 8) ~= content then
    return false
  end
  local waits = tonumber(redis.call('ZSCORE', DUE, string.sub(rec, 1, 7) .. '\0\0\0\0' .. id))
  return not waits or waits <= due and waits >= due - math.ceil(AGE / 1000) - 1
end

-- What a push meets that may not simply be stored: an outcome, or nil.
local function met(id, content, due, us)
  local rec = redis.call('HGET', MSG, id)
  if rec then
    return (RETRY and own(id, rec, content, due)) and 1 or 0
  end
  local till = unique and unique.till(id)
  if till then
    return unique.refuse(till, us)
  end
  return (RETRY and due - math.ceil(AGE / 1000) <= NOW) and 2 or nil
end

local outcomes, times = {}, {}
local earliest, first, last
for i = FIRST + 1, #ARGV, FIELDS do
  local id, content = ARGV[i], ARGV[i + 1]
  local due = due_of(ARGV[i + 2], ARGV[i + 3])
  local us = FIELDS > 4 and tonumber(ARGV[i + 4]) or 0
  local outcome = (RETRY or unique) and met(id, content, due, us)
  if not outcome then
    last = (last or reserve((#ARGV - FIRST) / FIELDS)) + 1
    local s = seq(last, content)
    outcome = redis.call('HSETNX', MSG, id, s .. content)
    if outcome == 1 then
      local m = s .. '\0\0\0\0' .. id
      times[#times + 1], times[#times + 2] = int(due), m
      set_trigger(id, due)
      if us > 0 then
        unique.take(id, us)
      end
      if not first or due < earliest then
        earliest, first = due, m
      end
    end
  end
  outcomes[#outcomes + 1] = outcome
end
on('ZADD', DUE, times)
if unique then
  unique.tidy()
end
announce(first, earliest)
return outcomes
