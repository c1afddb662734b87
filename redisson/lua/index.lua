-- INDEX has every waiting member in the order of offers. Removing one from its middle walks there from an
-- end, so it is popped at the head wherever that can be.

-- How many entries lie between two members of ours at most, by their numbers; nil when one is not ours.
local function apart(a, b)
  local x, y = ours(a), ours(b)
  return x and y and math.abs(x - y)
end

-- Removes a member from the end that it is nearer to, as far as the numbers of ours tell. Others are looked for from the
-- head.
local function remove(m, head)
  local middle = redis.call('LLEN', INDEX) / 2
  local from_head, from_tail = apart(m, head), apart(m, redis.call('LINDEX', INDEX, -1))
  local from, steps = 1, from_head or middle
  if from_tail and from_tail < (from_head or middle) then
    from, steps = -1, from_tail
  end
  walked = walked + math.min(steps, middle)
  return redis.call('LREM', INDEX, from, m)
end

-- Returns whether it was there.
local function unlist(m)
  local head = redis.call('LINDEX', INDEX, 0)
  if not head then
    return false
  elseif head == m then
    redis.call('LPOP', INDEX)
    return true
  end
  return remove(m, head) > 0
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

-- Finds the member with a prefix among those of a due time. One that only begins like it is another.
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

-- Pops INDEX at its head. It reads ahead, more each time, and takes out at once what was popped.
local function popper()
  local read, at, ahead = {}, 1, 1
  local p = {}

  function p.flush()
    if at > 1 then
      redis.call('LTRIM', INDEX, at - 1, -1)
    end
    read, at = {}, 1
  end

  -- The head, nil when INDEX is empty.
  function p.head()
    if at > #read and ahead > 0 then
      p.flush()
      read = redis.call('LRANGE', INDEX, 0, ahead - 1)
      ahead = #read > 0 and math.min(ahead * 2, 128) or 0 -- there is no more
    end
    return read[at]
  end

  -- Returns whether it was there.
  function p.take(m)
    local head = p.head()
    if head == m then
      at = at + 1
      return true
    elseif not head then
      return false
    end
    p.flush()
    ahead = 1
    return remove(m, head) > 0
  end

  return p
end

-- A transfer of Java's that meets a member of a layout that it cannot read breaks off, when it has copied to DEST what is due
-- before that one, and has taken it out of INDEX, but not out of TIMES: it would come twice. Such a member is one of
-- Java's that INDEX lacks while another layout is due.
local function copied_already(m)
  local layout = format_of(m)
  if layout == 'Both' or ours(m) then
    return false
  end
  for _, other in ipairs(redis.call('ZRANGEBYSCORE', TIMES, '-inf', int(NOW), 'LIMIT', 0, 100)) do
    local theirs = format_of(other)
    if theirs and theirs ~= 'Both' and theirs ~= layout then
      return true
    end
  end
  return false
end

-- A reader goes through up to limit messages that are due: peek returns one, and pop takes it out, though of TIMES and INDEX
-- only at done, together with all others; it returns false for one that is in DEST already. What is to stay stays in TIMES. Those of one
-- due time that Java has offered come as INDEX has them: in the order of offers, and from its head.
local function reader(limit, stay)
  local due = redis.call('ZRANGEBYSCORE', TIMES, '-inf', int(NOW), 'WITHSCORES', 'LIMIT', 0, limit)
  local i, list, gone, out_of_times, unreadable = 1, popper(), {}, {}, {}
  local r, next_one = {}, nil

  -- The head of INDEX where it goes before msg, which has the same due time.
  local function offered_before(msg)
    local head = list.head()
    if not head or head == msg.member or gone[head] or ours(head) and ours(msg.member) then
      return nil
    end
    local score = redis.call('ZSCORE', TIMES, head)
    return score and tonumber(score) == msg.due and parse(head, msg.due)
  end

  local function first()
    while due[i] do
      local m, score = due[i], tonumber(due[i + 1])
      if not gone[m] and not (more_ended and leased(m)) then
        local msg = parse(m, score)
        if msg then
          return msg
        end
        unreadable[#unreadable + 1] = {m, score}
      end
      i = i + 2
    end
  end

  function r.peek()
    if not next_one then
      local msg = first()
      next_one = msg and msg.member ~= list.head() and offered_before(msg) or msg
    end
    return next_one
  end

  function r.pop()
    local m = next_one.member
    gone[m], next_one = true, nil
    local fresh = list.take(m) or not LISTED or not copied_already(m)
    if not (fresh and stay) then
      out_of_times[#out_of_times + 1] = m
    end
    return fresh
  end

  function r.done()
    list.flush()
    on('ZREM', TIMES, out_of_times)
    for j, u in ipairs(unreadable) do
      if j > 1 and walked > WALK then
        return -- the next script finds the others
      end
      redis.call('ZREM', TIMES, u[1])
      quarantine(unlist(u[1]) and 'I' or 'T', u[1], u[2])
    end
  end

  return r
end
