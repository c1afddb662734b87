-- INDEX has every waiting member in the order of offers. Removing one from its middle walks there
-- from an end, so it is popped at the head wherever that can be.

-- How much to read next, after n entries of so many bytes together: more each time, but little of
-- what is large.
local LONGEST_PAGE, PAGE_BYTES = 128, 32 * 1024

local function next_page(n, bytes)
  return math.max(1, math.min(2 * n, LONGEST_PAGE, math.floor(n * PAGE_BYTES / bytes)))
end

local function bytes_of(entries, step)
  local bytes = 1
  for i = 1, #entries, step do
    bytes = bytes + #entries[i]
  end
  return bytes
end

-- How many entries lie between two members of ours at most, by their numbers; nil when one is not
-- ours.
local function apart(a, b)
  local x, y = ours(a), ours(b)
  return x and y and math.abs(x - y)
end

-- Removes a member from the end that it is nearer to, as far as the numbers of ours tell. Others
-- are looked for from the head.
local function remove(m, head)
  local middle = redis.call('LLEN', INDEX) / 2
  local from_head, from_tail = apart(m, head), apart(m, redis.call('LINDEX', INDEX, -1))
  local from, steps = 1, from_head or middle
  if from_tail and from_tail < (from_head or middle) then
    from, steps = -1, from_tail
  end
  walked = walked + math.min(steps, middle)
  asked = asked + math.min(steps, middle) / 500
  local removed = redis.call('LREM', INDEX, from, m)
  if removed > 0 then
    undo[#undo + 1] = {'LPUSH', INDEX, m}
  end
  return removed
end

-- Returns whether it was there.
local function unlist(m)
  local head = redis.call('LINDEX', INDEX, 0)
  if not head then
    return false
  elseif head == m then
    write({'LPUSH', INDEX, m}, 'LTRIM', INDEX, 1, -1)
    return true
  end
  return remove(m, head) > 0
end

-- Pops INDEX at its head. It reads ahead, more each time, and takes out at once what was popped.
local function popper()
  local read, at, ahead = {}, 1, 1
  local p = {}

  function p.flush()
    if at > 1 then
      local inverse = {'LPUSH', INDEX}
      for i = at - 1, 1, -1 do
        inverse[#inverse + 1] = read[i]
      end
      write(inverse, 'LTRIM', INDEX, at - 1, -1)
    end
    read, at = {}, 1
  end

  -- The head, nil when INDEX is empty.
  function p.head()
    if at > #read and ahead > 0 then
      p.flush()
      read = redis.call('LRANGE', INDEX, 0, ahead - 1)
      ahead = #read > 0 and next_page(#read, bytes_of(read, 1)) or 0 -- there is no more
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

-- Whether a member that is due has a layout that readers of this one fail on.
local MIXED_AMONG = 100 -- a transfer of Java's reads as many
local mixed = {}

local function other_layout_due(layout)
  if mixed[layout] == nil then
    mixed[layout] = false
    local from, page = 0, 1
    while from < MIXED_AMONG and not mixed[layout] do
      local some = redis.call('ZRANGEBYSCORE', TIMES, '-inf', int(NOW), 'LIMIT', from, page)
      for _, other in ipairs(some) do
        local theirs = format_of(other)
        mixed[layout] = mixed[layout] or theirs and theirs ~= 'Both' and theirs ~= layout or false
      end
      if #some < page then
        break
      end
      from, page = from + page, next_page(page, bytes_of(some, 1))
    end
  end
  return mixed[layout]
end

-- A transfer of Java's that meets a member of a layout that it cannot read breaks off, when it has
-- copied to DEST what is due before that one, and has taken it out of INDEX, but not out of TIMES:
-- it would come twice. Such a member is one of Java's that INDEX lacks while another layout is due.
local function copied_already(m)
  local layout = format_of(m)
  return layout ~= 'Both' and not ours(m) and other_layout_due(layout)
end

-- A reader goes through messages that are due: peek returns one, and pop takes it out of INDEX, and
-- of TIMES only at done, together with all others, which commits; it returns false for one that is
-- in DEST already. What is to stay stays in TIMES. Those of one due time that Java has offered come
-- as INDEX has them: in the order of offers, and from its head. When peek returns nil, stopped tells
-- whether there may be more that the script has no time to read.
local function reader(stay)
  local due, i, from, page = {}, 1, 0, 1
  local left = redis.call('ZCOUNT', TIMES, '-inf', int(NOW)) -- what was not read yet
  local list, gone, out_of_times, unreadable = popper(), {}, {}, {}
  local r, next_one = {}, nil

  local function read_on()
    due = left > 0 and redis.call('ZRANGE', TIMES, from, from + math.min(page, left) - 1, 'WITHSCORES') or {}
    local n = #due / 2
    i, from, left = 1, from + n, left - n
    page = n > 0 and next_page(n, bytes_of(due, 2)) or 1
    return n > 0
  end

  -- The head of INDEX where it goes before msg, which has the same due time.
  local function offered_before(msg)
    local head = list.head()
    if not head or head == msg.member or gone[head] or ours(head) and ours(msg.member) then
      return nil
    end
    local score = redis.call('ZSCORE', TIMES, head)
    return score and tonumber(score) == msg.due and parse(head, msg.due)
  end

  function r.stopped()
    return left > 0
  end

  local function first()
    while i <= #due or (from == 0 or not spent()) and read_on() do
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
    gone[m], next_one.in_times, next_one = true, true, nil
    local fresh = list.take(m) or not LISTED or not copied_already(m)
    if not (fresh and stay) then
      out_of_times[#out_of_times + 1] = m
    end
    return fresh
  end

  function r.done(others)
    list.flush()
    on('ZREM', TIMES, out_of_times)
    on('ZREM', TIMES, others or {})
    commit()
    for j, u in ipairs(unreadable) do
      if j > 1 and spent(#u[1]) then
        return -- the next script finds the others
      end
      quarantine(unlist(u[1]) and 'I' or 'T', u[1], u[2])
      redis.call('ZREM', TIMES, u[1])
      commit()
    end
  end

  return r
end
