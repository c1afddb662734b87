-- Looks at the types of the queue's keys. Returns the first that is wrong, as its place in KEYS and
-- what it holds, or nothing.
return wrong_type() or ''
