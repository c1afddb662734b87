-- Cancels what is waiting: OK, HELD or GONE for each id. ARGV[3] is for how many ms that is remembered.

-- What is known of an id. Holds that have ended are forgotten.
local function read(key)
  local r = {c = 0, d = 0, s = 0, held = false}
  local all = redis.call('HGETALL', key)
  for i = 1, #all, 2 do
    local f, v = all[i], tonumber(all[i + 1])
    if string.sub(f, 1, 2) ~= 't:' then
      r[f] = v
    elseif v > NOW then
      r.held = true
    else
      redis.call('HDEL', key, f)
    end
  end
  return r
end

-- A second try may find what the first has done.
local function ours(r)
  return RETRY and r.c >= r.s and r.c >= NOW - AGE
end

local S -- the stamp of all that are cancelled here

local function cancel(key)
  local r = read(key)
  local over = math.max(r.c, r.d)
  if r.held then
    return 'HELD'
  end
  if over > 0 and over >= r.s then
    return ours(r) and 'OK' or 'GONE'
  end
  S = S or int(stamp())
  redis.call('HSET', key, 'c', S)
  lasts(key, tonumber(ARGV[3]))
  return 'OK'
end

local out = {}
for i = FIRST, #KEYS do
  out[#out + 1] = cancel(KEYS[i])
end
return out
