SELECT activity FROM delayq_queue WHERE number = ?1
