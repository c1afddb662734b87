-- Leases up to limit messages from READY. A repeated one returns the messages that its first try
-- leased.
if not (RETRY and claimed_before()) then
  hand_out_ready()
  local failed = lease_all()
  if failed then
    return failed
  end
end
out[2] = sooner(due_behind(0), first_end())
return out
