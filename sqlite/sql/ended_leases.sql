-- Those that are due already, and the later ones, which were replaced in flight, by due time.
SELECT count(*), min(due) FROM delayq_message INDEXED BY delayq_message_by_time
WHERE queue = ?1 AND state = 1 AND at <= ?2 GROUP BY max(due, ?2)
