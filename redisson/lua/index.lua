-- INDEX has every waiting member in the order of offers. Removing one from its middle walks there from an
-- end, so it is popped at the head wherever that can be.

-- Removes a member from the end that it is nearer to, as far as the numbers of ours tell. Java's are looked for from the
-- head.
local function remove(m, head)
  local tail = redis.call('LINDEX', INDEX, -1)
  local at, first, last = ours(m), ours(head), ours(tail)
  local share, from = 0.5, 1
  if at and first and last and last > first then
    share = (at - first) / (last - first)
    from = share > 0.5 and -1 or 1
    share = math.max(math.min(share, 1 - share), 0)
  end
  walked = walked + share * redis.call('LLEN', INDEX)
  redis.call('LREM', INDEX, from, m)
end

local function unlist(m)
  local head = redis.call('LINDEX', INDEX, 0)
  if not head then
    return
  elseif head == m then
    redis.call('LPOP', INDEX)
  else
    remove(m, head)
  end
end

-- Compares the beginnings of two strings byte by byte, as TIMES sorts; Lua's own comparison goes by the locale.
local function compare(a, b, n)
  for i = 1, n do
    local x, y = string.byte(a, i) or -1, string.byte(b, i) or -1
    if x ~= y then
      return x - y
    end
  end
  return 0
end

-- Finds the member with a prefix among those of a due time.
local function find(prefix, due)
  local first = redis.call('ZCOUNT', TIMES, '-inf', '(' .. int(due))
  local last = first + redis.call('ZCOUNT', TIMES, int(due), int(due)) - 1
  while first <= last do
    local middle = math.floor((first + last) / 2)
    local m = redis.call('ZRANGE', TIMES, middle, middle)[1]
    local c = compare(m, prefix, #prefix)
    if c == 0 then
      return m
    elseif c < 0 then
      first = middle + 1
    else
      last = middle - 1
    end
  end
  return nil
end

-- A reader goes through up to limit messages that are due: peek returns a member and its due time, and pop takes it out
-- of INDEX and, together with all others, at done, out of TIMES. Those of one due time that Java has offered
-- come as INDEX has them: in the order of offers, and from its head.
local function reader(limit)
  local due = redis.call('ZRANGEBYSCORE', TIMES, '-inf', int(NOW), 'WITHSCORES', 'LIMIT', 0, limit)
  local i, head, popped, gone, aside = 1, nil, {}, {}, {}
  local r = {}

  local function other_first(m, score)
    if not head or head == m or ours(head) and ours(m) or not key_of(head) or is_rescue(head) then
      return false
    end
    local s = redis.call('ZSCORE', TIMES, head)
    return s and tonumber(s) == score
  end

  function r.peek()
    while due[i] do
      local m, score = due[i], tonumber(due[i + 1])
      if not key_of(m) then
        aside[#aside + 1] = {m, score}
        i = i + 2
      elseif gone[m] or is_rescue(m) then
        i = i + 2
      else
        if head == nil then
          head = redis.call('LINDEX', INDEX, 0)
        end
        if other_first(m, score) then
          return head, score
        end
        return m, score
      end
    end
    return nil
  end

  function r.pop(m)
    gone[m] = true
    popped[#popped + 1] = m
    if head == m then
      redis.call('LPOP', INDEX)
      head = nil
    elseif head then
      remove(m, head)
    end
  end

  function r.done()
    on('ZREM', TIMES, popped)
    for _, a in ipairs(aside) do
      redis.call('ZREM', TIMES, a[1])
      unlist(a[1])
      quarantine('T', a[1], a[2])
    end
  end

  return r
end
