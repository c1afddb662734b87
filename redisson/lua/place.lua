-- Finds an envelope that Java has moved to DEST. Returns its payload.
local function find_envelope(key)
  for _, payload in ipairs(redis.call('LRANGE', DEST, 0, -1)) do
    if enveloped(payload, 0) == key then
      return payload
    end
  end
end

-- Where a message waits by its state, or without one: due, origin, attempts, prefix.
local function place_of(key, origin, state)
  if not state then
    return origin, origin, 0, key
  end
  local due, first, attempts, rest = struct.unpack('>ddI4', state, 2)
  return due, first, attempts, string.sub(state, rest)
end
