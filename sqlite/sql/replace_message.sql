UPDATE delayq_message SET state = 0, at = ?3, due = ?3, place = ?4, attempts = 0, token = 0
WHERE queue = ?1 AND id = ?2
