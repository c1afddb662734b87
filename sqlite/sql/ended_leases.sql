SELECT count(*), min(due) FROM delayq_message INDEXED BY delayq_message_by_time
WHERE queue = ?1 AND state = 1 AND at <= ?2
