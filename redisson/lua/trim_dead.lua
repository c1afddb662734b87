-- Deletes the oldest dead letters that are not to be kept. Returns how many, and 1 if there may be
-- more.
local gone, more = not_kept(21, function(_, death)
  return #death
end)
delete_letters(gone)
tidy()
return {#gone, more}
