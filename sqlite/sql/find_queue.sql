SELECT number FROM delayq_queue WHERE name = ?1
