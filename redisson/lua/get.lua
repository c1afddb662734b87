-- Shows messages: for each its key and origin. It only reads. Returns for each S scheduled, R ready, L
-- leased or D dead, 0, due time in ms, attempts, payload, and the end of the lease in ms, the record
-- of the death, or ''. Returns nothing for a message that is not there. It may stop early: then it
-- has the first messages only.

-- Whether Redisson's list has a payload. LPOS is missing before Redis 6.0.6.
local function handed(payload)
  local at = redis.pcall('LPOS', DEST, payload)
  if type(at) ~= 'table' then
    return at and true
  end
  for _, item in ipairs(redis.call('LRANGE', DEST, 0, -1)) do
    if item == payload then
      return true
    end
  end
end

-- A leased message, or one whose lease has ended. Without its stand-in in TIMES Java has had it.
local function show_leased(key, v)
  local msg = held(key, v)
  if not ENVELOPE and not redis.call('ZSCORE', TIMES, msg.member) then
    return {}
  end
  local till = in_force(key) and redis.call('ZSCORE', LEASES, key)
  return {till and 'L' or 'R', 0, int(msg.due), msg.attempts, payload_of(msg), till and int(tonumber(till)) or ''}
end

local function show_dead(key)
  local death = redis.call('HGET', GRAVES, key)
  return death and {'D', 0, int(NOW), 0, '', death} or {}
end

local show

function show(key, origin)
  local v = redis.call('HGET', HELD, key)
  if v then
    return show_leased(key, v)
  end
  local state = redis.call('HGET', STATES, key)
  local kind = state and string.sub(state, 1, 1)
  if kind == 'D' then
    return show_dead(key)
  elseif kind == 'A' then -- a redriven message, named by the id that it has now
    return show(string.sub(state, 2), origin)
  elseif ENVELOPE and not state then
    return {}
  end
  local due, _, attempts, prefix = place_of(key, origin, state)
  local m = find(prefix, due)
  if m then
    return {due > NOW and 'S' or 'R', 0, int(due), attempts, payload_of(parse(m, due)), ''}
  end
  local payload = ENVELOPE and find_envelope(key) or not ENVELOPE and redis.call('HGET', PAYLOADS, prefix)
  if payload and (ENVELOPE or handed(payload)) then
    return {'R', 0, int(due), attempts, payload, ''}
  end
  return {}
end

local outcomes, bytes = {}, 0
for i = FIRST, #ARGV, 2 do
  if stops(outcomes, bytes) then
    break
  end
  local shown = show(ARGV[i], tonumber(ARGV[i + 1]))
  bytes = #(shown[5] or '') + #(shown[6] or '')
  outcomes[#outcomes + 1] = shown
end
return outcomes
