-- Schedules dead letters again, due now, as if they had just been pushed: a key each. Returns 1 done, 0 not
-- dead, 2 not dead or done by the first try. Its members have new ids, and keep the format that they had.
local outcomes, bytes = {}, 0
for i = FIRST, #ARGV do
  if stops(outcomes, 4 * bytes) then
    break
  end
  local key = ARGV[i]
  if redis.call('ZREM', DEAD, key) == 1 then
    local grave = redis.call('HGET', GRAVES, key)
    redis.call('HDEL', GRAVES, key)
    local _, origin, _, _, n, rest = struct.unpack('>ddI4dI4', grave)
    local old = string.sub(grave, rest + n)
    local m = new_member(reserve(1) + 1, payload_of(parse(old)), format_of(old))
    redis.call('ZADD', TIMES, int(NOW), m)
    if LISTED then
      redis.call('RPUSH', INDEX, m)
    end
    local msg = parse(m, NOW)
    msg.key, msg.origin = key, origin
    remember(msg, NOW, 0)
    announce(m, NOW)
    bytes = #m
    outcomes[#outcomes + 1] = 1
  else
    outcomes[#outcomes + 1] = RETRY and 2 or 0
  end
end
return outcomes
