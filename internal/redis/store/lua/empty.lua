-- Returns how many of the keys of a queue's messages there are.
return redis.call('EXISTS', unpack(KEYS))
