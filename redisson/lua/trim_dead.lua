-- Deletes the oldest dead letters that are not to be kept. Returns how many, and 1 if there may be
-- more.
local gone, more = not_kept(21, function(_, death)
  return #death
end)
for _, key in ipairs(gone) do
  delete_letter(key)
end
tidy()
return {#gone, more}
