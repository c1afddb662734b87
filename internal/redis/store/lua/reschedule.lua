-- Moves messages that wait: for each id, due time in ms or '', delay in us. Returns OK, NONE or
-- HELD for each, and UNKNOWN where none waits, perhaps because the first try moved it and a worker
-- took it since.
local outcomes = {}
for i = FIRST, #ARGV, 3 do
  local id = ARGV[i]
  local m, why = waiting(id)
  if m then
    local due = due_of(ARGV[i + 1], ARGV[i + 2])
    prove_release()
    local back = put_back({m}, {due}, {true}, {})[1]
    take_out(m)
    announce(back, due)
  end
  outcomes[#outcomes + 1] = why and (RETRY and 'UNKNOWN' or why) or 'OK'
end
return told(outcomes)
