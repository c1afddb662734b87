SELECT id, at, place FROM delayq_message INDEXED BY delayq_message_by_time
WHERE queue = ?1 AND state = 2 AND (at, place) > (?2, ?3) ORDER BY at, place LIMIT ?4
