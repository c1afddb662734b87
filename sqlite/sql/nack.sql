UPDATE delayq_message SET state = 0, at = ?6, due = ?6, token = 0
WHERE queue = ?1 AND id = ?2 AND state = 1 AND token = ?3 AND content = ?4 AND at > ?5 AND attempts > 0
