SELECT count(*) FROM (
    SELECT 1 FROM delayq_message INDEXED BY delayq_message_by_time WHERE queue = ?1 AND state = 2 LIMIT ?2
)
