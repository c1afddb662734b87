UPDATE delayq_queue SET activity = ?2 WHERE number = ?1
