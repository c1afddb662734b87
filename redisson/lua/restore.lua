-- Puts quarantined things back where they were: each as QUARANTINE has it; '1' first for deleting
-- them instead. Returns 1 done, 0 not there.
local outcomes = {}
for i = FIRST + 1, #ARGV do
  local what = ARGV[i]
  local due = redis.call('ZSCORE', QUARANTINE, what)
  if due then
    prove()
    local kind, rest = string.sub(what, 1, 1), string.sub(what, 2)
    if ARGV[FIRST] == '1' then
      rest = nil
    elseif kind == 'D' then
      write({'LTRIM', DEST, 0, -2}, 'RPUSH', DEST, rest)
    else
      if kind == 'I' then
        write({'LTRIM', INDEX, 1, -1}, 'LPUSH', INDEX, rest)
      end
      set_due(rest, tonumber(due))
    end
    redis.call('ZREM', QUARANTINE, what)
    commit()
    if rest and kind ~= 'D' then
      announce(rest, tonumber(due))
    end
  end
  outcomes[#outcomes + 1] = (due or RETRY) and 1 or 0
end
tidy()
return told(outcomes)
