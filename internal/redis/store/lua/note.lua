-- Returns the note of a queue's generations of shards, '' for none, and how many of the keys of its messages
-- there are. A client may send plain commands that read to replicas, which may be behind; a script goes to the master.
return {redis.call('GET', KEYS[11]) or '', redis.call('EXISTS', unpack(KEYS, 1, 10))}
