-- Gives back what ended leases held: how many at most.
expire(tonumber(ARGV[FIRST]))
return 0
