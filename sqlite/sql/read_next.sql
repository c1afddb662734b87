SELECT next FROM delayq_store
