-- Compares the beginnings of two strings byte by byte, as TIMES sorts; Lua's own comparison goes by
-- the locale.
local function compare(a, b, n)
  for i = 1, n do
    local x, y = string.byte(a, i) or -1, string.byte(b, i) or -1
    if x ~= y then
      return x - y
    end
  end
  return 0
end

-- Finds the member with a prefix among those of a due time. One that only begins like it is
-- another.
local function find(prefix, due)
  local first = redis.call('ZCOUNT', TIMES, '-inf', '(' .. int(due))
  local last = first + redis.call('ZCOUNT', TIMES, int(due), int(due)) - 1
  while first <= last do
    local middle = math.floor((first + last) / 2)
    local m = redis.call('ZRANGE', TIMES, middle, middle)[1]
    local c = compare(m, prefix, #prefix)
    if c == 0 then
      local _, n = header(m)
      return n == #prefix and m or nil
    elseif c < 0 then
      first = middle + 1
    else
      last = middle - 1
    end
  end
  return nil
end
