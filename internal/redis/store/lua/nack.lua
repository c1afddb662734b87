-- Gives messages back: for each token, delay in us, then '0', or '1' when untouched, or '2' and new
-- headers. One that was replaced in flight waits as the new one says. Returns 1 done, 0 the lease is lost, 2 unknown: it was lost or the first try has done
-- it. Of messages with new headers it may return outcomes for the first only.

-- When the message is due that has come back once since a lease, or nil.
local function due_back(m)
  local due = redis.call('ZSCORE', DUE, member(seq_of(m), gen_of(m) + 1, id_of(m)))
  return due and tonumber(due)
end

-- Whether the first end of a lease is still to come.
local function ahead(first)
  local left = (struct.unpack('>I4', first) - NOW) % 4294967296
  return left > 0 and left < 2147483648
end

-- Whether the first try gave the message back. The end of the lease would have made it due at once.
local function done_before(m, delay)
  local due = due_back(m)
  return due and (delay == 0 or due > NOW)
end

-- Whether the first try gave the message back untouched. It was counted then; but so were earlier
-- ones, and the lease may have ended since.
local function spared_before(m, first)
  local _, untouched = gens(id_of(m))
  return untouched > 0 and ahead(first) and due_back(m)
end

-- Whether the first try gave back a message that has been replaced, in flight or since. The lease has
-- not ended in time.
local function replaced_before(m, first)
  local now = current(id_of(m))
  return now and gen_of(now) == gen_of(m) + 1 and seq_of(now) ~= seq_of(m) and ahead(first)
end

-- New headers of a place, or nil.
local function headers_at(i)
  local how = ARGV[FIRST + 3 * i - 1]
  return string.byte(how) == 50 and string.sub(how, 2) or nil
end

-- Leaves out the last members where the records to be copied before them have that many bytes.
local ROOM = 8 * 1024 * 1024

local function leave_out_last(ms)
  for i, m in ipairs(ms) do
    if headers_at(i) then
      ROOM = ROOM - redis.call('HSTRLEN', MSG, id_of(m))
    end
    if ROOM <= 0 then
      for last = #ms, i + 1, -1 do
        ms[last] = nil
      end
      return
    end
  end
end

local ms, firsts = tokens(FIRST, 3)
leave_out_last(ms)
local holds = holds_all(ms, firsts)
local given = held(ms, holds)

local outcomes, dues, untouched, headers, seqs = {}, {}, {}, {}, {}
for i, m in ipairs(ms) do
  local delay, unseen = tonumber(ARGV[FIRST + 3 * i - 2]), ARGV[FIRST + 3 * i - 1] == '1'
  if holds[i] then
    local seq, due = replaced(m, holds[i])
    dues[#dues + 1] = due or unseen and due_in(holds[i]) or after(delay)
    untouched[#dues], seqs[#dues] = unseen, seq
    headers[m] = not seq and headers_at(i) or nil
    outcomes[i] = 1
  elseif RETRY then
    local done = unseen and spared_before(m, firsts[i]) or not unseen and done_before(m, delay)
    outcomes[i] = (done or replaced_before(m, firsts[i])) and 1 or 2
  else
    outcomes[i] = 0
  end
end
if #given > 0 then
  prove_release()
  local backs = next(headers) and put_back_with(headers, given, dues, untouched, seqs) or put_back(given, dues, untouched, seqs)
  release(given)
  local head = first_waiting() -- of equal due times the first by push order, which need not be the first here
  for i, back in ipairs(backs) do
    if back == head then
      tell(dues[i])
    end
  end
end
return told(outcomes)
