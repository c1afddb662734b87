-- Maintains the queue while no Go worker waits: ends leases, and moves due messages to DEST, where
-- Java takes them, until it has so many: how many. Returns the time in us and the next event in ms.
local wanted = tonumber(ARGV[FIRST])

-- A script moves so many bytes of payload, where the server's clock does not tell the time that
-- they take.
local ROOM = 256 * 1024

-- HANDED, read once something is to go between its entries.
local order

-- The place of the first entry that a message comes before.
local function place_of_next(msg)
  order = order or redis.call('LRANGE', HANDED, 0, -1)
  local first, last = 1, #order + 1
  while first < last do
    local middle = math.floor((first + last) / 2)
    if sorts_before(msg.due, msg.member, entry_due(order[middle]), entry_prefix(order[middle])) then
      last = middle
    else
      first = middle + 1
    end
  end
  return first
end

-- Adds to DEST a message that came back, before the first entry that it precedes. Entries that Java
-- has taken the items of are no help: where these are many, it goes to the head.
local function insert(msg, entry, payload)
  local at = place_of_next(msg)
  local tries = 10
  while order[at] and tries > 0 do
    local pivot = redis.call('HGET', PAYLOADS, entry_prefix(order[at]))
    if pivot and redis.call('LINSERT', DEST, 'BEFORE', pivot, payload) > 0 then
      undo[#undo + 1] = {'LREM', DEST, 1, payload}
      write({'LREM', HANDED, 1, entry}, 'LINSERT', HANDED, 'BEFORE', order[at], entry)
      break
    end
    forget_handed(order[at])
    table.remove(order, at)
    tries = tries - 1
  end
  if not order[at] then
    write({'LTRIM', DEST, 0, -2}, 'RPUSH', DEST, payload)
    write({'LTRIM', HANDED, 0, -2}, 'RPUSH', HANDED, entry)
  elseif tries == 0 then
    at = 1
    write({'LTRIM', DEST, 1, -1}, 'LPUSH', DEST, payload)
    write({'LTRIM', HANDED, 1, -1}, 'LPUSH', HANDED, entry)
  end
  table.insert(order, at, entry)
  write({'HDEL', PAYLOADS, prefix_of(msg)}, 'HSET', PAYLOADS, prefix_of(msg), payload)
end

local function hand_over(room)
  local due, moved, bytes = reader(false), 0, 0
  local last = redis.call('LINDEX', HANDED, -1)
  local payloads, entries, pairs_of, prefixes = {}, {}, {}, {}
  if due.peek() then
    prove()
  end
  while moved < room and ROOM > 0 and (moved == 0 or not spent(4 * bytes)) and due.peek() do
    local msg = due.peek()
    moved, bytes = moved + 1, 0
    if due.pop() then
      local payload = payload_of(msg)
      local entry = entry_of(msg.due, payload, prefix_of(msg))
      bytes = #payload
      ROOM = ROOM - bytes
      if last and sorts_before(msg.due, msg.member, entry_due(last), entry_prefix(last)) then
        insert(msg, entry, payload)
      else
        local n = #payloads + 1
        payloads[n], entries[n], pairs_of[2 * n - 1], pairs_of[2 * n] = payload, entry, prefix_of(msg), payload
        prefixes[n] = prefix_of(msg)
      end
    end
  end
  local n = #payloads
  if n > 0 then
    write({'HDEL', PAYLOADS, unpack(prefixes)}, 'HSET', PAYLOADS, unpack(pairs_of))
    write({'LTRIM', HANDED, 0, -n - 1}, 'RPUSH', HANDED, unpack(entries))
    write({'LTRIM', DEST, 0, -n - 1}, 'RPUSH', DEST, unpack(payloads))
  end
  due.done()
end

local there = redis.call('LLEN', DEST)
expire()
trim_handed()
if there < wanted and not more_ended then -- their messages may be due before all others
  hand_over(wanted - there)
end
forget_some()
tidy()

local head = redis.call('ZRANGE', TIMES, 0, 0, 'WITHSCORES')[2]
local ends = redis.call('ZRANGE', LEASES, 0, 0, 'WITHSCORES')[2]
local soonest = math.min(tonumber(head or math.huge), tonumber(ends or math.huge))
if soonest <= NOW and redis.call('LLEN', DEST) >= wanted then
  soonest = NOW + 50 -- it is for Java now
end
return {int(NOW_US), soonest < math.huge and int(soonest) or '-1'}
