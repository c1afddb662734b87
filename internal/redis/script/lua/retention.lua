-- Tells whether a letter behind the first n, which cannot be read, is so old that they are too.
-- There may be very many of them.
local function later_is_old(died_at, oldest, n)
  local last = redis.call('ZCARD', DEAD) - 1
  while n <= last do
    local died = died_at(redis.call('ZRANGE', DEAD, n, n)[1])
    if died then
      return died <= oldest
    end
    n = n < last and math.min(2 * n, last) or last + 1
  end
  return false
end

-- Returns the oldest dead letters that are not to be kept, and 1 if there may be more. The script's
-- arguments are the age in us from which on a letter goes, or '', and how many letters stay, or ''.
-- at is where the time of death begins in a record of GRAVES, and size gives the bytes of a letter
-- by its key and this record.
--
-- One script deletes a hundred letters, and fewer large ones, so that Redis is busy for a
-- millisecond or two. Records may be large: each is read only when the one before it goes.
local function not_kept(at, size)
  local MOST, ROOM = 100, 4 * 1024 * 1024
  local page = redis.call('ZRANGE', DEAD, 0, MOST - 1)
  local beyond = ARGV[FIRST + 1] ~= '' and redis.call('ZCARD', DEAD) - tonumber(ARGV[FIRST + 1]) or 0
  local oldest = ARGV[FIRST] ~= '' and math.floor((NOW_US - tonumber(ARGV[FIRST])) / 1000)
  local n = 0 -- the last one to go
  local function died_at(key)
    local death = redis.call('HGET', GRAVES, key)
    return death and #death >= at + 7 and struct.unpack('>d', death, at), death
  end
  for i, key in ipairs(page) do
    local died, death = died_at(key)
    if i <= beyond or oldest and died and died <= oldest then
      n = i -- with those before it that cannot be read
    elseif died or not oldest then
      break
    end
    ROOM = ROOM - size(key, death or '')
    if ROOM <= 0 or i == #page then
      if n < i and later_is_old(died_at, oldest, i) then
        n = i
      end
      return {unpack(page, 1, n)}, (ROOM <= 0 and n > 0 or n == MOST) and 1 or 0
    end
  end
  return {unpack(page, 1, n)}, 0
end
