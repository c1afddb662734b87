-- Gives messages back: for each its key, the lease's stamp, delay in us, '1' when untouched. Returns 1 done, 0 the
-- lease is lost, 2 unknown.
local outcomes = {}
local earliest
for i = FIRST, #ARGV, 4 do
  local msg = release(ARGV[i], ARGV[i + 1])
  if msg then
    local due, attempts = after(tonumber(ARGV[i + 2])), msg.attempts
    if ARGV[i + 3] == '1' then
      due, attempts = msg.due, attempts - 1
    end
    put_back(msg, due, attempts)
    earliest = math.min(earliest or due, due)
  end
  outcomes[#outcomes + 1] = msg and 1 or lost(ARGV[i + 1])
end
if earliest then
  announce_time(earliest)
end
return outcomes
