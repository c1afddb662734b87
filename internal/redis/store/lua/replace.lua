-- Stores messages that replace others: 1 to look only, 2 to replace messages in flight too, 3 for both, 0 for
-- neither, and then for each id, content, when it
-- is due as in schedule, the seq of the message that it may replace or '' for none, how many us
-- after the first push it is due at the latest or '', when that was in us or '' for now, or '-' for now
-- if the message is in flight and was not replaced yet, and behind how many bytes of the content the time of the first push is to be filled in, 0 for nowhere.
--
-- Returns for each 1 stored; 2 unknown; why it was refused: 3 the message of that id is in flight, 4
-- it is dead, 5 it is gone and the id is taken, 6 the store takes no new ids; {seq, headers} of the message that waits where it is
-- not the one that may be replaced, '' for none, and '-' for headers where '-' is right: nothing is
-- stored then; {error}.
--
-- A seq is never given twice. So a script that is executed twice, or late, replaces no message that
-- another push has stored in between.
local HOW = tonumber(ARGV[FIRST])
local LOOK, IN_FLIGHT = HOW % 2 == 1, HOW > 1
local windows = redis.call('EXISTS', UNIQUE) == 1
local ended = redis.call('EXISTS', KEYS[11]) == 1 -- whether the store takes no new ids

-- Fills in the time of the first push.
local function filled(content, at)
  if at == 0 then
    return content
  end
  return string.sub(content, 1, at) .. string.format('%016.0f', NOW_US) .. '000' .. string.sub(content, at + 20)
end

-- Whether a repeated push finds the message that its first try may have stored. The time of the
-- first push may differ.
local function own(id, rec, content, due, at)
  if at > 0 then
    local filled = 7 + at
    rec = string.sub(rec, 1, filled) .. string.sub(rec, filled + 20)
    content = string.sub(content, 1, at) .. string.sub(content, at + 20)
  end
  if string.sub(rec, 8) ~= content then
    return false
  end
  local waits = tonumber(redis.call('ZSCORE', DUE, current(id)))
  return not waits or waits <= due and waits >= due - math.ceil(AGE / 1000) - 1
end

-- Stores a message in place of the one that waits as member m, if any. Each write leaves a message
-- that can be handed out: the old one, or the new one. gen stays, so that one write to MSG changes
-- over.
local function put(id, content, due, m, came_back)
  -- These change nothing: they prove that the further commands are allowed.
  prove_release()
  redis.call('ZREM', DUE, '')
  redis.call('HDEL', GENS, '')
  redis.call('LREM', READY, 1, '')
  if not m then
    redis.call('HDEL', GENS, id) -- there only if a script was stopped
  end
  local s = seq(reserve(1) + 1, #content)
  local gen = came_back and gens(id) or 0
  local new = member(s, gen, id)
  redis.call('ZADD', DUE, int(due), new)
  local reply = redis.pcall('HSET', MSG, id, s .. content)
  if type(reply) == 'table' and reply.err then
    redis.pcall('ZREM', DUE, new)
    if redis.pcall('HLEN', MSG) == 0 then
      redis.pcall('UNLINK', SEQ)
    end
    named('HSET', reply)
  end
  if came_back then -- attempts count anew
    redis.call('HSET', GENS, id, struct.pack('>I4I4', gen, gen))
  end
  if m then
    take_out(m)
  end
  announce(new, due)
  return 1
end

-- Whether the message of an id is in flight, and was not replaced yet: MaxWait counts from now then.
local function untouched_in_flight(id)
  local m = current(id)
  local v = m and redis.call('HGET', HELD, m)
  return v and not moved(v) and holds_all({m})[1] and not replaced(m, v) or false
end

-- Stores a message in place of the one that is in flight as member m. The last write changes over:
-- until then HELD names a seq that MSG has not, and GENS says what MSG said of the member.
local function supersede(id, content, due, m)
  local v = redis.call('HGET', HELD, m)
  local was, was_due = replaced(m, v)
  local gen, untouched = gens(id)
  local s = seq(reserve(1) + 1, #content)
  local before = was and was .. struct.pack('>d', was_due) or string.rep('\0', 15)
  named('HSET', redis.pcall('HSET', GENS, id, struct.pack('>I4I4', gen, untouched) .. seq_of(m) .. '!'))
  named('HSET', redis.pcall('HSET', HELD, m, string.sub(v, 1, 8) .. '!' .. before .. s .. struct.pack('>d', due) .. string.sub(v, -4)))
  named('HSET', redis.pcall('HSET', MSG, id, s .. content))
  return 1
end

-- Fails on a server that is out of memory. It would let additions pass after a removal.
local function prove_room()
  named('ZADD', redis.pcall('ZADD', DUE, 'XX', 0, ''))
end

local function replace(id, content, when, expected, wait, first, at)
  if not LOOK then
    prove_room()
  end
  local anew = IN_FLIGHT and wait ~= '' and untouched_in_flight(id)
  local due = string.byte(when) == 43 and after(tonumber(when)) or tonumber(when) -- '+'
  if wait ~= '' then
    due = math.min(due, math.ceil(((tonumber(first) or NOW_US) + tonumber(wait)) / 1000))
  end
  local rec = redis.call('HGET', MSG, id)
  local there = rec and seq_of(rec) or ''
  if LOOK or there ~= expected or anew ~= (first == '-') then
    if RETRY and not LOOK and there ~= expected then
      touch()
      return (rec and own(id, rec, content, due, at)) and 1 or 2
    end
    local m, why = nil, 'NONE'
    if rec and not LOOK then
      m, why = waiting(id)
    end
    if anew then
      return {there, '-'}
    elseif LOOK or m or not rec or IN_FLIGHT and why == 'HELD' then
      local body = rec and wait ~= '' and body_of(rec)
      return {there, body and string.sub(rec, 8, body - 1) or ''}
    end
    return why == 'HELD' and 3 or redis.call('ZSCORE', DEAD, id) and 4 or {there, ''}
  end
  if not rec then
    local till = windows and tonumber(redis.call('ZSCORE', UNIQUE, id))
    if RETRY then
      return 2 -- the first try may have stored one that is gone, or was replaced by one that is gone
    elseif till and till > NOW then
      return 5
    elseif ended then
      return 6
    end
  end
  local m, why
  if rec then
    m, why = waiting(id)
    if why == 'HELD' and IN_FLIGHT then
      return supersede(id, filled(content, at), due, current(id))
    end
    if why == 'HELD' then
      return 3
    elseif not m and redis.call('ZSCORE', DEAD, id) then
      return 4
    end
  end
  return put(id, filled(content, at), due, m, m and returned(m))
end

local outcomes = {}
for i = FIRST + 1, #ARGV, 7 do
  local id, content, when, expected, wait, first, at = unpack(ARGV, i, i + 6)
  if i == FIRST + 1 then -- nothing is stored yet: an error is that of the whole, and says where
    outcomes[1] = replace(id, content, when, expected, wait, first, tonumber(at))
  else
    local ok, outcome = pcall(replace, id, content, when, expected, wait, first, tonumber(at))
    outcomes[#outcomes + 1] = ok and outcome or {type(outcome) == 'table' and outcome.err or outcome}
  end
end
return told(outcomes)
