SELECT id, unique_until, content, at FROM delayq_message INDEXED BY delayq_message_by_time
WHERE queue = ?1 AND state = 2 ORDER BY at, place LIMIT ?2
