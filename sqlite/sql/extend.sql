UPDATE delayq_message SET at = ?6
WHERE queue = ?1 AND id = ?2 AND state = 1 AND token = ?3 AND content = ?4 AND at > ?5
