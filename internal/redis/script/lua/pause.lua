-- Pauses a queue: until a time in ms or '', for so many us or 0. Without either the pause has no end; one
-- that has passed ends the pause. Tells sleeping fetchers when to look again.
--
-- 'first' behind them is for the first pause of a store that only its maker knows: a 0 before its
-- end tells it from all others. 'next' changes nothing where the store has not this pause any more.
local PAUSED, CHANNEL, UNTIL, FOR, HOW = KEYS[1], ARGV[3], ARGV[4], ARGV[5], ARGV[6]
if HOW == 'next' and not string.find(redis.call('GET', PAUSED) or '', '^0%d') then
  return 1
end
local mark = HOW == 'first' and '0' or ''
local endless = UNTIL == '' and FOR == '0'
local till = endless and 0 or due_of(UNTIL, FOR)
if not endless and till <= NOW then
  till = NOW
  redis.call('UNLINK', PAUSED)
elseif endless or GIVEN_NOW ~= '' then
  redis.call('SET', PAUSED, mark .. int(till))
else
  redis.call('SET', PAUSED, mark .. int(till), 'PX', int(till - NOW))
end
local told = not endless and redis.pcall('PUBLISH', CHANNEL, int(till))
if type(told) == 'table' and told.err then
  return {1, 'PUBLISH: ' .. told.err}
end
return 1
