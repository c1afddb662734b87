SELECT count(*) FROM delayq_message INDEXED BY delayq_message_by_time
WHERE queue = ?1 AND state = ?2 AND at > ?3 AND at <= ?4
