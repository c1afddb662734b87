-- Schedules dead letters again, due now, as if they had just been pushed: a key each. Returns 1
-- done, 0 not dead, 2 not dead or done by the first try. Its members have new ids, and keep the
-- format that they had.
local outcomes, bytes = {}, 0
for i = FIRST, #ARGV do
  if stops(outcomes, 4 * bytes) then
    break
  end
  local key = ARGV[i]
  local death = redis.call('ZSCORE', DEAD, key) and redis.call('HGET', GRAVES, key)
  if death then
    prove()
    local _, origin, _, _, n, rest = struct.unpack('>ddI4dI4', death)
    local old = string.sub(death, rest + n)
    local m = new_member(reserve(1) + 1, payload_of(parse(old)), format_of(old))
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
