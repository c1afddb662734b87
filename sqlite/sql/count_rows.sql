SELECT count(*) FROM delayq_message WHERE queue = ?1
