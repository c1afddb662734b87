-- Leases up to limit messages from READY, unless the queue has been paused since they were moved. A
-- repeated one returns the messages that its first try leased.
local paused, resumes = false, nil
if not (RETRY and claimed_before()) then
  local there = redis.call('EXISTS', PAUSED, GENS, GENS) -- GENS counts twice
  came_back = there > 1
  if there % 2 == 1 then
    paused, resumes = pause_state()
  end
  if not paused then
    hand_out_ready()
  end
  local failed = lease_all()
  if failed then
    return failed
  end
end
local head = resumes
if not paused then
  head = due_behind(0)
end
out[2] = sooner(head, first_end())
return out
