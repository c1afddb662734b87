-- Leases up to limit messages from READY: limit, lease in us, the claim's own name. Returns what claim does.
local limit, till, claim = tonumber(ARGV[FIRST]), after(tonumber(ARGV[FIRST + 1])), ARGV[FIRST + 2]
local out = {int(NOW_US), ''}
if not (RETRY and claimed_before(out, claim)) then
  for _ = 1, limit do
    local m = redis.call('LPOP', READY)
    if not m then
      break
    end
    if not lease(out, m, held_due(m), till, claim) then
      break
    end
  end
end
out[2] = int(next_event())
return out
