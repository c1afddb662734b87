SELECT state, at, content, unique_until, due, attempts FROM delayq_message WHERE queue = ?1 AND id = ?2
