package rabbitmq

import (
	"context"
	"log/slog"
	"sync/atomic"
	"time"
)

// refusal is the state of reports about a queue that refuses messages. Levels that cannot pass
// messages on to it hold up the messages of all queues.
type refusal struct {
	report func()       // may be nil
	noted  atomic.Int64 // time of the last report, in ns since 1970
	warned bool         // of the policy; belongs to watchPolicies
}

// noteRefusal reports, once a minute at most, that the queue refuses messages.
func (q *queue) noteRefusal() {
	now := time.Now().UnixNano()
	if last := q.refusal.noted.Load(); now-last < int64(time.Minute) || !q.refusal.noted.CompareAndSwap(last, now) {
		return
	}
	q.log.Error("delayq: a queue refuses messages: it has no leader, or it is full and a policy sets overflow to reject-publish. "+
		"Delayed messages of all queues come late meanwhile. Without that overflow, the oldest messages go to undeliverable", "queue", q.name)
	if q.refusal.report != nil {
		q.refusal.report()
	}
}

// noteRefusalBy reports a refused message, if the queue itself refused it and not a level.
func (q *queue) noteRefusalBy(key string) {
	if key == q.names.queue(q.name) {
		q.noteRefusal()
	}
}

// policiesEvery is how often a backend looks for queues that refuse messages. It also looks at each
// Open.
const policiesEvery = 30 * time.Second

// watchPolicies looks for queues that refuse messages, or will once they are full. AMQP reports a
// refusal only to the publisher, and the publisher of a delayed message is a level's queue.
func (b *Backend) watchPolicies(ctx context.Context, opened <-chan struct{}, log *slog.Logger) {
	for failing := false; ; {
		err := b.noteRefusals(ctx)
		if err != nil && !failing && ctx.Err() == nil {
			log.Warn("delayq: reading policies from the management API failed; trying again", "err", err)
		}
		failing = err != nil
		select {
		case <-opened:
		case <-time.After(policiesEvery):
		case <-ctx.Done():
			return
		}
	}
}

func (b *Backend) noteRefusals(ctx context.Context) error {
	all, err := b.queueInfos(ctx)
	if err != nil {
		return err
	}
	found := make(map[string]*queueInfo, len(all))
	for i := range all {
		found[all[i].Name] = &all[i]
	}
	for _, q := range b.openQueues() {
		p := found[q.names.queue(q.name)]
		switch refuses := p != nil && p.policy().refuses(); {
		case refuses && p.full():
			q.noteRefusal()
		case refuses && !q.refusal.warned:
			q.log.Warn("delayq: a policy has a queue refuse messages once it is full, which stops delayed messages of all queues: take overflow out of the policy", "queue", q.name)
		}
		q.refusal.warned = p != nil && p.policy().refuses()
	}
	return nil
}
