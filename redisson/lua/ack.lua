-- Deletes messages: for each the lease's number and its first end in ms. Returns 1 done, 0 the lease is lost, 2
-- unknown.
local outcomes, keys = {}, {}
for i = FIRST, #ARGV, 2 do
  local msg = release(ARGV[i], ARGV[i + 1])
  if msg then
    keys[#keys + 1] = msg.key
  end
  outcomes[#outcomes + 1] = msg and 1 or lost(ARGV[i + 1])
end
on('HDEL', STATES, keys)
tidy()
return outcomes
