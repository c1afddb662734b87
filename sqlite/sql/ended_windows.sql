SELECT id FROM delayq_message INDEXED BY delayq_message_by_time
WHERE queue = ?1 AND state = 3 AND at <= ?2 ORDER BY at LIMIT ?3
