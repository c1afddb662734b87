-- Common to all scripts. KEYS[1] has the queue's last stamp. The other keys are records, a hash each:
--
--   c        all up to this stamp are cancelled
--   d        one of this stamp is done or dead, the highest
--   s        the last stamp that is known of
--   t:TOKEN  until when one is held, in us
--
-- Stamps are the server's clock in us, pushed ahead where that would not make them rise: it may have been set back, or be
-- that of another server since a failover.
local CLOCK, FIRST = KEYS[1], 2
local MONTHS = 60 * 24 * 3600 * 1000 -- longer than any clock is wrong by

local NOW = NOW_US -- stamps are in us

local function stamp()
  local last = tonumber(redis.call('GET', CLOCK) or '0')
  local s = math.max(NOW, last + 1)
  redis.call('SET', CLOCK, int(s), 'PX', MONTHS)
  return s
end

-- A record never ends sooner than it would have, nor a part of a ms before its holds.
local function lasts(key, ms)
  if redis.call('PTTL', key) <= ms then
    redis.call('PEXPIRE', key, int(ms + 1))
  end
end
