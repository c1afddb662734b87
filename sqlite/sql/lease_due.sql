-- Those that select_due has read: all up to the last one's place.
UPDATE delayq_message INDEXED BY delayq_message_by_time
SET state = 1, at = ?4, token = ?5, attempts = attempts + 1
WHERE queue = ?1 AND state = 0 AND (at, place) <= (?2, ?3)
