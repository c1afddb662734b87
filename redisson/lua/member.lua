local function number(n)
  return struct.pack('>I7', n)
end

-- Makes a member whose id is a number: members of one due time sort as they were pushed. With 07
-- before the number both kinds of reader find the same payload: one takes 8 bytes for the id, the
-- other 1 and 7.
local function new_member(n, payload, format)
  local before = format == 'V2' and '\8\0' or format == 'V1' and '\0' or '\7'
  return before .. number(n) .. struct.pack('<I8', #payload) .. payload
end

-- How many bytes a member has before its payload, and how many of these are its id; nil for a
-- member that no version of Redisson can read.
local function header(m)
  local n, first = #m, string.byte(m, 1)
  if n >= 17 and first == 8 and struct.unpack('<I8', m, 10) == n - 17 then
    return 17, 9
  end
  if n >= 16 and struct.unpack('<I8', m, 9) == n - 16 then
    return 16, 8
  end
  if n >= 10 and first > 0 and n >= first + 9 and struct.unpack('<I8', m, first + 2) == n - first - 9 then
    return first + 9, first + 1
  end
  return nil
end

local function format_of(m)
  local _, n = header(m)
  if not n then
    return nil
  end
  if n ~= 8 then
    return 'V2'
  end
  return string.byte(m, 1) == 7 and 'Both' or 'V1'
end

-- Numbers of ours are microseconds of the last ten years: they begin at the server's clock, and
-- hardly run ahead of it.
local MOST = BEGAN + 86400 * 1000000
local LEAST = MOST - 10 * 366 * 86400 * 1000000

-- Whether a member, or its prefix, seems to be one of ours, and its number then. Java's ids are
-- random: one of some 60,000 looks like it.
local function ours(m)
  local a, b = string.byte(m, 1, 2)
  local at = a == 8 and 3 or 2
  if #m < at + 6 or a ~= 0 and a ~= 7 and (a ~= 8 or b ~= 0) then
    return nil
  end
  local n = struct.unpack('>I7', m, at)
  return n > LEAST and n < MOST and n or nil
end

-- Whether a message comes before another, by due times and members or prefixes. Those of one due
-- time that we have pushed go by their numbers. For Java's nothing tells: which was offered first
-- is for INDEX to say, and for DEST.
local function sorts_before(due, m, other_due, other)
  if due ~= other_due then
    return due < other_due
  end
  local n, k = ours(m), ours(other)
  return n and k and n < k or false
end

-- An envelope is MAGIC | packed id | content.
local MAGIC = '\221dq\1'

-- The packed id of an envelope that begins after so many bytes; nil for other bytes.
local function enveloped(s, from)
  local n = string.byte(s, from + 5)
  if not n or string.sub(s, from + 1, from + 4) ~= MAGIC then
    return nil
  end
  local last = from + 5 + (n == 0 and 16 or n)
  return #s >= last and string.sub(s, from + 5, last) or nil
end

-- A message is a table: member, of which the first n bytes are its prefix, the id with the length
-- byte where there is one; key, due, origin, attempts. parse makes one of a member, nil for an
-- unreadable one.
local function parse(m, due)
  local h, n = header(m)
  local key = h and (ENVELOPE and enveloped(m, h) or not ENVELOPE and string.sub(m, 1, n))
  return key and {member = m, n = n, key = key, due = due, origin = due, attempts = 0} or nil
end

local function prefix_of(msg)
  return string.sub(msg.member, 1, msg.n)
end

local function payload_of(msg)
  return string.sub(msg.member, msg.n + 9)
end
