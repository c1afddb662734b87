-- Deletes the oldest dead letters that are not to be kept. Returns how many, and 1 if there may be
-- more.
local gone, more = not_kept(13, function(id)
  return redis.call('HSTRLEN', MSG, id)
end)
remove_dead(gone)
return {#gone, more}
