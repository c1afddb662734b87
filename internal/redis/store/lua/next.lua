-- Milliseconds at which the message behind so many others is due, or nil.
local function due_behind(n)
  return tonumber(redis.call('ZRANGE', DUE, n, n, 'WITHSCORES')[2])
end

-- Milliseconds at which the first lease ends, or nil.
local function first_end()
  return tonumber(redis.call('ZRANGEBYSCORE', LEASES, '-inf', '+inf', 'WITHSCORES', 'LIMIT', 0, 1)[2])
end

-- The earlier of two times, either of which may be nil; -1 where there is neither.
local function sooner(a, b)
  return math.min(a or b or -1, b or a or -1)
end
