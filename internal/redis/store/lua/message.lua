local function member(seq, gen, id)
  return seq .. struct.pack('>I4', gen) .. id
end

-- MSG has for each id its seq and then headers and body.
local function seq_of(rec)
  return string.sub(rec, 1, 7)
end

-- Reads an entry of GENS, or false: gen, how often the message came back untouched, and its seq if
-- that is not the one in MSG: it was redriven, or is in flight and was replaced (then '!' follows).
local function gens_in(v)
  if not v or #v < 8 then
    return 0, 0, ''
  end
  local gen, untouched = struct.unpack('>I4I4', v)
  return gen, untouched, string.sub(v, 9, 15)
end

-- GENS has an entry for each message that came back.
local function gens(id)
  return gens_in(redis.call('HGET', GENS, id))
end

-- Whether the message of a member ever came back. Without that it has no entry in GENS.
local function returned(m)
  return string.sub(m, 8, 11) ~= '\0\0\0\0'
end

-- The member of a message that has rec in MSG and v in GENS; then how often it came back untouched.
local function member_now(id, rec, v)
  local gen, untouched, seq = gens_in(v)
  return member(seq == '' and seq_of(rec) or seq, gen, id), untouched
end

-- The member that a message of this id has now, or nil.
local function current(id)
  local rec = redis.call('HGET', MSG, id)
  return rec and member_now(id, rec, redis.call('HGET', GENS, id)) or nil
end
