UPDATE delayq_message SET state = 0, at = ?3, due = ?3, token = 0 WHERE queue = ?1 AND id = ?2
