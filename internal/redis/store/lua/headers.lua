-- Where the body begins in a record of MSG, or nil for one that no push can have written. Before it
-- lie the headers, and before them their length, 7 bits to a byte, the lowest first.
local function body_of(rec)
  local at, size, unit = 8, 0, 1
  repeat
    local b = string.byte(rec, at)
    if not b then
      return nil
    end
    at, size, unit = at + 1, size + b % 128 * unit, unit * 128
  until b < 128
  return at + size
end

-- Gives a leased message new headers, as MSG keeps them. Returns the old ones, or nil where it
-- changed nothing.
local function change_headers(m, headers)
  local id = id_of(m)
  local rec = named('HGET', redis.pcall('HGET', MSG, id))
  local body = rec and body_of(rec)
  if not body or gens(id) > gen_of(m) then -- a script that was stopped has put it back
    return nil
  end
  named('HSET', redis.pcall('HSET', MSG, id, string.sub(rec, 1, 7) .. headers .. string.sub(rec, body)))
  return string.sub(rec, 8, body - 1)
end

-- As put_back, but first gives those members that are in headers new ones. If a write fails, all
-- have their old ones again.
local function put_back_with(headers, ms, dues, untouched, seqs)
  local old = {}
  local ok, backs = pcall(function()
    for _, m in ipairs(ms) do
      old[m] = headers[m] and change_headers(m, headers[m])
    end
    return put_back(ms, dues, untouched, seqs)
  end)
  if not ok then
    for m, was in pairs(old) do
      if was then
        pcall(change_headers, m, was)
      end
    end
    error(backs, 0)
  end
  return backs
end
