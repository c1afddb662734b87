local function gen_of(m)
  return (struct.unpack('>I4', string.sub(m, 8, 11)))
end

-- Puts messages back under their next members, which it returns: their members, when each is due,
-- which of them are untouched, and the seqs of those that were replaced in flight. The caller takes the old entries out after that. A member whose
-- gen GENS has not is not handed out, so a stop in between leaves each message where it was.
local function put_back(ms, dues, untouched, seqs)
  local ids, backs, entries, values = {}, {}, {}, {}
  for i, m in ipairs(ms) do
    ids[i] = id_of(m)
  end
  for i, v in ipairs(on('HMGET', GENS, ids) or {}) do
    local gen, spared, seq = gens_in(v)
    local m, id = ms[i], ids[i]
    if gen <= gen_of(m) then -- else a script that was stopped has put it back
      gen = gen + 1
      if untouched[i] then
        spared = spared + 1
      end
      if seqs[i] then -- attempts count anew
        spared, seq = gen, ''
      end
      local n = #entries
      entries[n + 1], entries[n + 2] = int(dues[i]), member(seqs[i] or seq_of(m), gen, id)
      values[n + 1], values[n + 2] = id, struct.pack('>I4I4', gen, spared) .. seq
    end
    backs[i] = member(seqs[i] or seq_of(m), gen, id)
  end
  on('ZADD', DUE, entries)
  local reply = #values > 0 and redis.pcall('HSET', GENS, unpack(values))
  if type(reply) == 'table' and reply.err then
    for i = 2, #entries, 2 do
      redis.pcall('ZREM', DUE, entries[i])
    end
    named('HSET', reply)
  end
  return backs
end

-- When the message was due whose ended lease has v in HELD, and its seq if it was replaced in flight.
-- Returns nil where the entry is no lease: a claim without a script left it and lost, or the message
-- is done, dead, or waits.
local function due_after(m, v)
  if #m < 12 then
    return nil
  end
  local known = v and certain(v)
  if redis.call('ZSCORE', DEAD, id_of(m)) or not known and (not is_current(m, v) or redis.call('ZSCORE', DUE, m)) then
    return nil
  end
  if not v then
    return NOW
  end
  local seq, due = replaced(m, v)
  return due or due_in(v), seq
end

-- A script gives back the messages of so many ended leases. More would block the server for long.
local ENDED = 500

-- Gives back the messages of ended leases. Returns whether there are more: then nothing may be
-- handed out yet, since their messages may be due before all others.
local function expire()
  local ended = redis.call('ZRANGEBYSCORE', LEASES, '-inf', NOW, 'LIMIT', 0, ENDED)
  if #ended == 0 then
    return false
  end
  local ms, dues, seqs, known = {}, {}, {}, {}
  for i, v in ipairs(redis.call('HMGET', HELD, unpack(ended))) do
    local m = ended[i]
    if not (v and moved(v)) then -- a message in READY keeps its entry
      known[#known + 1] = m
      local due, seq = due_after(m, v)
      if due then
        ms[#ms + 1], dues[#dues + 1] = m, due
        seqs[#ms] = seq
      end
    end
  end
  prove_release()
  put_back(ms, dues, {}, seqs)
  on('ZREM', DUE, ms) -- there only if a claim was stopped half-way
  on('HDEL', HELD, known)
  redis.call('ZREM', LEASES, unpack(ended))
  return #ended == ENDED and redis.call('ZCOUNT', LEASES, '-inf', NOW) > 0
end
