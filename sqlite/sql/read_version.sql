SELECT version FROM delayq_store
