UPDATE delayq_message SET due = ?3, place = ?4, attempts = 0 WHERE queue = ?1 AND id = ?2
