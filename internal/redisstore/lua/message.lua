local function member(seq, gen, id)
  return seq .. struct.pack('>I4', gen) .. id
end

-- MSG has for each id its seq and then headers and body.
local function seq_of(rec)
  return string.sub(rec, 1, 7)
end

local function content_of(rec)
  return string.sub(rec, 8)
end

-- GENS has an entry for each message that came back: gen, and how often it came back untouched.
local function gens(id)
  local v = redis.call('HGET', GENS, id)
  if not v then
    return 0, 0
  end
  local gen, untouched = struct.unpack('>I4I4', v)
  return gen, untouched
end

-- Whether the message of a member ever came back. Without that it has no entry in GENS.
local function returned(m)
  return string.sub(m, 8, 11) ~= '\0\0\0\0'
end

-- The member that a message of this id has now, or nil.
local function current(id)
  local rec = redis.call('HGET', MSG, id)
  if not rec then
    return nil
  end
  local gen = gens(id)
  return member(seq_of(rec), gen, id)
end
