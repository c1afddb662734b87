package delayq

// settlesOfWorker is how many settles may be under way for each worker that has gone on. On Redis a script serves 7 messages of a burst when
// 32 workers wait for their acks, 15 with one such ack each and 33 with four; a message costs server and client half as much then.
// More than that gains little.
const settlesOfWorker = 4

// overlap says whether a worker may go on before its message is settled, and counts the settle if so. A store that hangs stops the workers
// once there are too many. Who claims nothing ahead has no more in hand than there are workers, and in process there is nothing to wait for.
func (c *consumer) overlap() bool {
	if c.ahead.limit == 0 || c.acks.Direct {
		return false
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	may := c.settling < settlesOfWorker*c.workers
	if may {
		c.settling++
	}
	return may
}

func (c *consumer) overlapped() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.settling--; c.settling == 0 {
		c.notify()
	}
}
