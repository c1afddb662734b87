-- A script that moves messages stops after so many microseconds or so many entries of INDEX walked
-- over, which is as long. Both stay below a time that a client notices.
local BUDGET, WALK = 600, 40000
local walked = 0

-- Since Redis 7.2 TIME stands still while a script runs. Versions since then have os.clock, all but
-- the first of them.
local cpu = rawget(_G, 'os') and os.clock
local cpu_began = cpu and cpu()

local function elapsed()
  if cpu then
    return (cpu() - cpu_began) * 1000000
  end
  return server_clock() - BEGAN
end

-- Whether the script has had its time, or a part of it. bytes is the size of the messages moved
-- since the last call: the clock is asked after a few small messages, and after each large one.
local asked, took = 0, 0

local function spent(bytes, budget)
  asked = asked + 1 + (bytes or 0) / 1024
  if asked >= 8 then
    asked, took = 0, elapsed()
  end
  return walked > WALK or took > (budget or BUDGET)
end

-- Whether a script that settles messages stops before the next one: it is run again for those
-- without an outcome. Their number is limited, so that this is for large ones. Their bytes are
-- limited where the server's clock does not tell the time that they take.
local SETTLE_BUDGET, SETTLE_ROOM = 1200, 8 * 1024 * 1024

local function stops(outcomes, bytes)
  SETTLE_ROOM = SETTLE_ROOM - bytes
  return #outcomes > 0 and (SETTLE_ROOM <= 0 or spent(bytes, SETTLE_BUDGET))
end
