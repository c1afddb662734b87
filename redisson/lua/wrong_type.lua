-- The first key that holds something that the queue does not keep there, as its place in KEYS and
-- what it holds; nil for none.
local function wrong_type()
  local types = {'list', 'zset', 'list', 'zset', 'hash', 'hash', 'zset', 'hash', 'string', 'list', 'hash', 'zset'}
  for i, wanted in ipairs(types) do
    local found = redis.call('TYPE', KEYS[i]).ok
    if found ~= wanted and found ~= 'none' then
      return i .. ' ' .. found
    end
  end
end
