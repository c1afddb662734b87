-- Puts quarantined things back where they were: each as QUARANTINE has it; '1' first for deleting them instead. Returns 1
-- done, 0 not there.
local outcomes = {}
for i = FIRST + 1, #ARGV do
  local what = ARGV[i]
  local due = redis.call('ZSCORE', QUARANTINE, what)
  if due then
    redis.call('ZREM', QUARANTINE, what)
    local kind, rest = string.sub(what, 1, 1), string.sub(what, 2)
    if ARGV[FIRST] == '1' then
      rest = nil
    elseif kind == 'D' then
      redis.call('RPUSH', DEST, rest)
    else
      redis.call('ZADD', TIMES, due, rest)
      if kind == 'I' then
        redis.call('LPUSH', INDEX, rest)
      end
      announce(rest, tonumber(due))
    end
  end
  outcomes[#outcomes + 1] = (due or RETRY) and 1 or 0
end
tidy()
return outcomes
