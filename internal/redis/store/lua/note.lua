-- Returns the note of a queue's generations of shards, or ''. A client may send plain commands that read to
-- replicas, which may be behind; a script goes to the master.
return redis.call('GET', KEYS[1]) or ''
