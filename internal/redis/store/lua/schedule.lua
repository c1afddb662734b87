-- Stores messages: how many arguments each has, and then for each id, content, when it is due, in
-- ms or as '+' and a delay in us, and, as a fourth where any has it, for how many us the id stays
-- taken, or 0. Idempotent by id: one that is there stays. Returns an outcome for each: 1 stored; 2
-- unknown: the first try may have stored one that was due and done since, which must not come again;
-- or why it was refused: 0 a message of that id waits, 3 it is in flight, 4 it is dead, 5 it is gone
-- and the id is taken, 6 the store takes no new ids. 1 alone is for all.
local FIELDS = tonumber(ARGV[FIRST])

local SPLIT = KEYS[11]
local there = redis.call('EXISTS', UNIQUE, GENS, GENS, SPLIT, SPLIT, SPLIT, SPLIT) -- GENS counts twice
local ended = there > 3 -- whether the store takes no new ids
there = ended and there - 4 or there
local taken = FIELDS > 3 or there % 2 == 1 -- whether ids stay taken without a message

-- What only some pushes need: repeated ones, those of ids that are there, and those where ids stay
-- taken. Others do not call this, since each function costs them time.
local function special()
  local s, opened = {}, 0

  -- Until when an id is taken, in ms, or nil.
  local function taken_till(id)
    local till = tonumber(named('ZSCORE', redis.pcall('ZSCORE', UNIQUE, id)) or NOW)
    return till > NOW and till or nil
  end

  -- Whether a repeated push finds a message that its first try may have stored: one of the same
  -- content and, while it waits for the first time, of the due time that the delay gave then.
  local function own(id, rec, content, due)
    if string.sub(rec, 8) ~= content then
      return false
    end
    local waits = tonumber(redis.call('ZSCORE', DUE, string.sub(rec, 1, 7) .. '\0\0\0\0' .. id))
    return not waits or waits <= due and waits >= due - math.ceil(AGE / 1000) - 1
  end

  -- The outcome of a push whose id another message has. Its member is as in message.lua, which
  -- would cost each push.
  function s.refused(id, rec)
    if redis.call('ZSCORE', DEAD, id) then
      return 4
    elseif redis.call('EXISTS', LEASES) == 0 then
      return 0
    end
    local v, seq, gen = redis.call('HGET', GENS, id) or '', string.sub(rec, 1, 7), '\0\0\0\0'
    if #v >= 8 then
      gen = string.sub(v, 1, 4)
      seq = #v > 8 and string.sub(v, 9, 15) or seq
    end
    return tonumber(redis.call('ZSCORE', LEASES, seq .. gen .. id) or 0) > NOW and 3 or 0
  end

  -- The outcome of a push that may not simply be stored, or nil. Where the id is taken without a
  -- message, the first try may have taken it: then its message has come and gone since.
  function s.met(id, content, due, us)
    local rec = named('HGET', redis.pcall('HGET', MSG, id))
    if rec then
      touch()
      return (RETRY and own(id, rec, content, due)) and 1 or s.refused(id, rec)
    end
    local till = taken and taken_till(id)
    if till then
      return (RETRY and us > 0 and till <= after(us) and till >= after(us - AGE)) and 2 or 5
    end
    return (RETRY and due - math.ceil(AGE / 1000) <= NOW) and 2 or ended and 6 or nil
  end

  function s.take(id, us)
    named('ZADD', redis.pcall('ZADD', UNIQUE, int(after(us)), id))
    opened = opened + 1
  end

  -- Drops some ids whose time is over, more than were taken. The key goes with the last of them, by
  -- the server's clock: not where another is given.
  function s.tidy()
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

  return s
end

local checks = (RETRY or taken or ended) and special()
local outcomes, times, ids = {}, {}, {}

-- Stores the contents, and then enters when they are due. Returns whether all are stored, and when
-- the first of them is due if that is before all others. The loop uses locals, which cost least.
local function store()
  local redis, args, fields, outcomes, times = redis, ARGV, FIELDS, outcomes, times
  local n, stored = 0, 0
  local when, due, score, last, earliest, head
  for i = FIRST + 1, #args, fields do
    local id, content = args[i], args[i + 1]
    if args[i + 2] ~= when then -- mostly it is that of the message before
      when = args[i + 2]
      due, score = tonumber(when), when -- Lua is slow at writing numbers
      if string.byte(when) == 43 then -- '+'
        due = after(due)
        score = int(due)
      end
    end
    local us = fields > 3 and tonumber(args[i + 3]) or 0
    local outcome = checks and checks.met(id, content, due, us)
    if not outcome then
      if not last then
        -- This fails where DUE has another type, before anything is written.
        head = named('ZRANGE', redis.pcall('ZRANGE', DUE, 0, 0, 'WITHSCORES'))[2]
        if there > 1 then
          -- Nothing is added or removed: this proves that the last command is allowed. ZADD comes first:
          -- a server that is out of memory lets additions pass after a removal.
          named('ZADD', redis.pcall('ZADD', DUE, 'XX', 0, ''))
          named('HDEL', redis.pcall('HDEL', GENS, ''))
        end
        last = reserve((#args - FIRST) / FIELDS)
      end
      last = last + 1
      local s = seq(last, #content)
      outcome = redis.pcall('HSETNX', MSG, id, s .. content)
      if outcome == 1 then
        local m = s .. '\0\0\0\0' .. id
        stored = stored + 1
        times[2 * stored - 1], times[2 * stored] = score, m
        if us > 0 then
          checks.take(id, us)
        end
        if there > 1 then
          ids[stored] = id
        end
        if not earliest or due < earliest then
          earliest = due
        end
      else
        named('HSETNX', outcome)
        outcome = (checks or special()).refused(id, redis.call('HGET', MSG, id))
      end
    end
    n = n + 1
    outcomes[n] = outcome
  end
  on('HDEL', GENS, ids) -- there only if a script was stopped that deleted a message of this id
  on('ZADD', DUE, times)
  return n == stored, earliest and (not head or earliest < tonumber(head)) and earliest
end

-- A message without a due time would keep its id and never come.
local ok, all, first = pcall(store)
if not ok then
  local failed = all
  for i = 2, #times, 2 do
    redis.pcall('HDEL', MSG, id_of(times[i]))
    if taken then
      redis.pcall('ZREM', UNIQUE, id_of(times[i]))
    end
  end
  if redis.pcall('HLEN', MSG) == 0 then
    redis.pcall('UNLINK', SEQ)
  end
  return type(failed) == 'table' and failed or redis.error_reply(failed)
end
if taken then
  local tidied, why = pcall(checks.tidy)
  silence = not tidied and (type(why) == 'table' and why.err or why) or nil
end
if first then
  tell(first)
end
return told(all and 1 or outcomes)
