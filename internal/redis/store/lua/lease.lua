-- HELD has the due time of each lease, then the name of the claim, and in 4 bytes when the lease
-- was to end: of it a token has what a member has not, for a server that has forgotten a lease may
-- give another the same member. An entry of READY has the due time alone. A claim without a script
-- (see arbitrate) has '?' before its name: it may have lost, and then this is no lease.
--
-- If the message was replaced in flight, the name is '!', and two times a seq with the due time of the
-- message that has it, the last two that were stored. The record in MSG tells which it is; with
-- neither, the message is still the old one.

-- The due time in an entry of HELD. One that is unreadable counts as due now: an entry that is no
-- number would fail each script that meets it.
local function due_in(v)
  local due = #v >= 8 and struct.unpack('>d', v)
  return due and math.abs(due) < math.huge and due or NOW
end

local function moved(v)
  return #v == 8
end

-- Whether an entry of HELD alone tells that its member is the one that a message has now.
local function certain(v)
  local mark = string.byte(v, 9) or 63
  return mark ~= 63 and mark ~= 33
end

-- The seq and the due time of the message that has replaced the one of a lease, with v in HELD, or nil.
local function replaced(m, v)
  if string.byte(v, 9) ~= 33 then -- '!'
    return nil
  end
  local rec = redis.call('HGET', MSG, id_of(m))
  for at = 10, 25, 15 do
    local seq = string.sub(v, at, at + 6)
    if rec and seq_of(rec) == seq then
      return seq, (struct.unpack('>d', string.sub(v, at + 7, at + 14)))
    end
  end
end

-- Whether a member is the one that its message has now. Of a message that was replaced in flight GENS
-- has an entry; where that was deleted by hand, HELD tells.
local function is_current(m, v)
  local id = id_of(m)
  return current(id) == m or v and replaced(m, v) and not redis.call('HGET', GENS, id)
end

-- Whether the lease that has v in HELD is in force. Mostly one look tells for all that none has
-- ended.
local none_ended

local function in_force(m, v)
  if not certain(v) then
    if moved(v) then
      return false
    end
    local till = redis.call('ZSCORE', LEASES, m)
    -- Without the key, which was deleted by hand then, a lease that is certain has no end.
    local endless = not till and string.byte(v, 9) == 33 and redis.call('EXISTS', LEASES) == 0 -- '!'
    return (endless or till and tonumber(till) > NOW) and is_current(m, v)
  end
  if none_ended == nil then
    none_ended = redis.call('ZCOUNT', LEASES, '-inf', NOW) == 0
  end
  return none_ended or tonumber(redis.call('ZSCORE', LEASES, m) or 0) > NOW
end

-- Reads the tokens among the arguments, each so many behind the one before: their members, and when
-- their leases were to end.
local function tokens(from, step)
  local ms, firsts = {}, {}
  for i = from, #ARGV, step do
    firsts[#firsts + 1], ms[#ms + 1] = string.sub(ARGV[i], 1, 4), string.sub(ARGV[i], 5)
  end
  return ms, firsts
end

-- The entries of HELD of some members, by their places; false where the lease is not in force. With
-- firsts only leases count that were to end then.
local function holds_all(ms, firsts)
  local holds = on('HMGET', HELD, ms) or {}
  for i, v in ipairs(holds) do
    holds[i] = v and not (firsts and string.sub(v, -4) ~= firsts[i]) and in_force(ms[i], v) and v
  end
  return holds
end

-- Returns the members whose leases are in force, those with something in holds. Of one that is
-- there twice only the first has the lease.
local function held(ms, holds)
  local done, seen = {}, {}
  for i, m in ipairs(ms) do
    holds[i] = not seen[m] and holds[i]
    if holds[i] then
      done[#done + 1] = m
      seen[m] = true
    end
  end
  return done
end
