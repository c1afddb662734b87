-- Gives back what ended leases held. Returns 1 where there are more.
return expire() and 1 or 0
