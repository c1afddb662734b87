DELETE FROM delayq_message
WHERE queue = ?1 AND id = ?2 AND state = 1 AND token = ?3 AND content = ?4 AND at > ?5 AND attempts > 0 AND unique_until <= ?5
