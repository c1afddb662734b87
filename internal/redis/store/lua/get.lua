-- Shows messages: an id each. It only reads. Returns for each S scheduled, R ready, L leased, D dead
-- or U for an id that is taken without a message, and until when the id is taken in ms, or 0; then,
-- but for U, due time in ms, attempts, content, and the end of the lease in ms, the record of the
-- death, or ''. Returns nothing for an id that is not there. A reply stops at so many bytes of
-- content: it has the first messages only.
local room = 8 * 1024 * 1024
local windows = redis.call('EXISTS', UNIQUE) == 1

local function taken_till(id)
  local till = windows and tonumber(redis.call('ZSCORE', UNIQUE, id))
  return till and till > NOW and int(till) or '0'
end

-- Where a message is: its state, due time, attempts, and the end of its lease or the record of its
-- death. Returns nothing where a script that was stopped left no place. It looks in the order in
-- which cancel does.
local function place_of(id, rec)
  local v = redis.call('HGET', GENS, id)
  local gen, untouched = gens_in(v)
  local m = member_now(id, rec, v)
  local due = tonumber(redis.call('ZSCORE', DUE, m))
  if due then
    return due > NOW and 'S' or 'R', due, gen - untouched, ''
  end
  v = redis.call('HGET', HELD, m)
  if v and moved(v) then
    return 'R', due_in(v), gen - untouched, ''
  elseif redis.call('ZSCORE', DEAD, id) then
    return 'D', NOW, gen - untouched, redis.call('HGET', GRAVES, id) or ''
  end
  local till = tonumber(redis.call('ZSCORE', LEASES, m))
  local seq, later = replaced(m, v or '')
  if till and seq then
    return till > NOW and 'L' or later > NOW and 'S' or 'R', later, 0, till > NOW and int(till) or ''
  elseif till and v and till > NOW then
    return 'L', due_in(v), gen + 1 - untouched, int(till)
  elseif till then -- expire gives it back
    return 'R', v and due_in(v) or NOW, gen + 1 - untouched, ''
  end
end

local function show(id)
  local till, rec = taken_till(id), redis.call('HGET', MSG, id)
  if rec then
    local state, due, attempts, more = place_of(id, rec)
    if state then
      room = room - #rec
      return {state, till, int(due), attempts, string.sub(rec, 8), more}
    end
  end
  return till ~= '0' and not rec and {'U', till} or {}
end

local out = {}
for i = FIRST, #ARGV do
  if room <= 0 then
    break
  end
  out[#out + 1] = show(ARGV[i])
end
return out
