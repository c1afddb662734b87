UPDATE delayq_message SET state = 3, at = unique_until, token = 0, content = 0, reason = NULL
WHERE queue = ?1 AND id = ?2
