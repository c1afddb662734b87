-- Where Java may take messages too, a leased one stays in TIMES, to be due a while after the lease
-- has ended: should no Go process run then, Java hands it out. It is not in INDEX, where Java looks
-- for what waits.
local GRACE = tonumber(ARGV[6])

-- HELD is stamp | claim (8 bytes) | due, origin | attempts, this hand-out counted | lengths of key
-- and prefix | key | member. The stamp, the claim's number and the first end in ms, is what tells
-- one lease of a message from the next. There is no key where the member has it.
local STAMP = 16

local function stamp(n, ends)
  return struct.pack('>I8I8', n, ends)
end

local function first_end(mark)
  return (struct.unpack('>I8', mark, 9))
end

local function claim_of(v)
  return string.sub(v, STAMP + 1, STAMP + 8)
end

-- Where a member begins in an entry of HELD.
local function member_at(v)
  local a, b = string.byte(v, 45, 46)
  return 49 + a * 256 + b
end

-- The message that an entry of HELD holds.
local function held(key, v)
  local due, origin, attempts, _, n = struct.unpack('>ddI4I2I2', v, 25)
  return {member = string.sub(v, member_at(v)), n = n, key = key, due = due, origin = origin, attempts = attempts}
end

-- Whether the lease of a key in HELD is in force. Mostly one look tells that for all.
local all_in_force

local function in_force(key)
  if all_in_force == nil then
    all_in_force = redis.call('ZCOUNT', LEASES, '-inf', int(NOW)) == 0
  end
  return all_in_force or tonumber(redis.call('ZSCORE', LEASES, key) or 0) > NOW
end

-- The entry of HELD of a lease with this key and stamp; nil where there is none or it is not in
-- force.
local function given(key, mark)
  local v = redis.call('HGET', HELD, key)
  return v and string.sub(v, 1, STAMP) == mark and in_force(key) and v or nil
end
