DELETE FROM delayq_content WHERE key = ?1
