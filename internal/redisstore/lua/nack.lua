-- Gives messages back: for each member, delay in us, '1' when untouched. Returns 1 done, 0 the lease
-- is lost.
local outcomes = {}
for i = FIRST, #ARGV, 3 do
  local m, untouched = ARGV[i], ARGV[i + 2] == '1'
  if holds(m) then
    local due = end_lease(m)
    if not untouched then
      due = after(tonumber(ARGV[i + 1]))
    end
    announce(put_back(m, due, untouched), due)
    set_trigger(id_of(m), due)
    outcomes[#outcomes + 1] = 1
  else
    outcomes[#outcomes + 1] = 0
  end
end
return outcomes
