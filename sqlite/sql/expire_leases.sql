UPDATE delayq_message SET state = 0, at = due, token = 0 WHERE queue = ?1 AND state = 1 AND at <= ?2
