SELECT headers FROM delayq_content WHERE key = ?1
