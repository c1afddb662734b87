-- The common case of an ack: all leases are in force, and no message was replaced. It returns 1 for all. The
-- functions of the other cases would take longer to make than this to run.
--
-- The first argument is when all leases were to end, as at the beginning of their tokens, which lack it
-- then; or '', and they have it.
local SHARED = ARGV[FIRST]

-- Returns nil, before it has written anything, where there is another case.
local function ack_all()
  local sub, byte = string.sub, string.byte
  local ms, ids, came_back = {unpack(ARGV, FIRST + 1)}, {}, {}
  local holds = on('HMGET', HELD, ms)
  local any_came_back = redis.call('EXISTS', GENS) == 1
  local known -- the entry that was looked at last: in a burst many have the same
  for i = 1, #ms do
    local m, v = ms[i], holds[i]
    if v ~= known then
      local kind = v and byte(v, 9)
      if not kind or kind == 63 or kind == 33 or sub(v, -4) ~= SHARED then -- as in certain
        return nil
      end
      known = v
    end
    ids[i] = sub(m, 12)
    if any_came_back and sub(m, 8, 11) ~= '\0\0\0\0' then
      came_back[#came_back + 1] = ids[i]
    end
  end
  if redis.call('ZCOUNT', LEASES, '-inf', NOW) > 0 then
    return nil
  end
  local all = all_there_is(came_back)
  local held = on('HDEL', HELD, ms)
  if not forget(ids, came_back, all) then
    on('ZREM', LEASES, ms)
  end
  if held == #ms then
    return 1
  end
  local outcomes, seen = {}, {} -- of a lease that is there twice, the first has it
  for i, m in ipairs(ms) do
    outcomes[i], seen[m] = seen[m] and 0 or 1, true
  end
  return outcomes
end

local acked = SHARED ~= '' and not RETRY and ack_all()
if acked then
  return acked
end
