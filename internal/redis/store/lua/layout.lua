-- Changes the note of a queue's generations of shards. The arguments are the note that is to be
-- changed and the new one, '' for none; or '?', and how many shards a queue without a note is to have.
-- Returns the note that is there then.
local old, new = ARGV[FIRST], ARGV[FIRST + 1]
local NOTE = KEYS[11]
local there = redis.call('GET', NOTE) or ''
if old == '?' then
  if there ~= '' then
    return there
  end
  -- Its messages, if any, are the oldest generation. The number is none of an earlier queue of the name,
  -- whose shards may refuse pushes: milliseconds.
  local number = int(math.floor(server_clock() / 1000))
  local keys = {unpack(KEYS, 1, 10)}
  old, new = '', (redis.call('EXISTS', unpack(keys)) > 0 and '0:1,' or '') .. number .. ':' .. new
end
if there ~= old then
  return there
end
if new == '' then
  redis.call('UNLINK', NOTE)
else
  redis.call('SET', NOTE, new)
end
redis.pcall('PUBLISH', CHANNEL, 0) -- the sleeping handles read it anew
return new
