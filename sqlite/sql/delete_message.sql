DELETE FROM delayq_message WHERE queue = ?1 AND id = ?2
