UPDATE delayq_message SET state = 0, at = ?3, due = ?3, place = ?4, attempts = 0, reason = NULL
WHERE queue = ?1 AND id = ?2 AND state = 2
