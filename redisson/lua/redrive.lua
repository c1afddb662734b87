-- Schedules dead letters again, due now, as if they had just been pushed: a key each. Returns 1
-- done, 0 not dead or without a whole record, 2 neither or done by the first try. Its members have
-- new ids, and keep the format that they had.
local outcomes, bytes = {}, 0

-- The message of a dead letter's record, its member and its origin; nil where somebody has cut it.
local function letter(death)
  if not death or #death < 32 then
    return nil
  end
  local _, origin, _, _, n, rest = struct.unpack('>ddI4dI4', death)
  local old = string.sub(death, rest + n)
  return parse(old), old, origin
end

for i = FIRST, #ARGV do
  if stops(outcomes, 4 * bytes) then
    break
  end
  local key = ARGV[i]
  local was, old, origin = letter(redis.call('ZSCORE', DEAD, key) and redis.call('HGET', GRAVES, key))
  if was then
    prove()
    local m = new_member(reserve(1) + 1, payload_of(was), format_of(old))
    if LISTED then
      write({'LTRIM', INDEX, 0, -2}, 'RPUSH', INDEX, m)
    end
    local msg = parse(m, NOW)
    msg.key, msg.origin = key, origin
    remember(msg, NOW, 0)
    set_due(m, NOW)
    redis.call('ZREM', DEAD, key)
    commit()
    redis.call('HDEL', GRAVES, key)
    announce(m, NOW)
    bytes = #m
    outcomes[#outcomes + 1] = 1
  else
    outcomes[#outcomes + 1] = RETRY and 2 or 0
  end
end
return told(outcomes)
