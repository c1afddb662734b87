-- Removes nothing: proves, before anything is written, that release is allowed. Then a server that
-- is out of memory lets additions pass.
local function prove_release()
  redis.call('HDEL', HELD, '')
  redis.call('ZREM', LEASES, '')
end

-- Ends leases. An entry of LEASES without one of HELD is checked against MSG when it ends, so HELD
-- goes first.
local function release(ms)
  on('HDEL', HELD, ms)
  on('ZREM', LEASES, ms)
end
