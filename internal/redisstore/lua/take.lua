-- Leases up to limit messages from READY: limit, lease in us, the claim's own name. Returns what claim does.
local limit, till, claim = tonumber(ARGV[FIRST]), after(tonumber(ARGV[FIRST + 1])), ARGV[FIRST + 2]
local out = {int(NOW_US), ''}
if not (RETRY and claimed_before(out, claim)) then
  lease_ready(out, limit, till, claim)
end
out[2] = int(next_event())
return out
