-- Gives back the messages of ended leases. Returns 1 where there are more.
return expire() and 1 or 0
