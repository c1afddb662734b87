DELETE FROM delayq_queue WHERE number = ?1
