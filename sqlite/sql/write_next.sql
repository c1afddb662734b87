UPDATE delayq_store SET next = ?1
