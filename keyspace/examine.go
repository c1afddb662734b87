package keyspace

import (
	"context"
	"fmt"

	"github.com/delayq/delayq/backend/admin"
	"github.com/delayq/delayq/internal/redis/call"
	"github.com/delayq/delayq/internal/redis/queue"
)

var (
	_ admin.Examiner      = (*Backend)(nil)
	_ admin.QueueExaminer = (*Backend)(nil)
)

// ExamineQueue is as in admin.QueueExaminer: whether the queue is paused.
func (b *Backend) ExamineQueue(ctx context.Context, name string) ([]admin.Finding, error) {
	return queue.ExamineQueue(ctx, b.queues, name)
}

// Examine is as in admin.Examiner: each server's version, role, eviction, persistence and clock,
// and whether it tells of expiries. It turns no notifications on; the first Open does.
func (b *Backend) Examine(ctx context.Context) (admin.Examination, error) {
	x, err := queue.Examine(ctx, b.queues)
	if err != nil {
		return x, err
	}
	return call.Do(ctx, b.queues.Calls, func(ctx context.Context) (admin.Examination, error) { return b.examineAll(ctx, x) })
}

// examineAll adds whether each server tells of expiries.
func (b *Backend) examineAll(ctx context.Context, x admin.Examination) (admin.Examination, error) {
	masters, err := b.listener.masters(ctx)
	if err != nil {
		x.Findings = append(x.Findings, admin.Finding{
			Severity: admin.Problem, About: "connection", Text: err.Error(), Remedy: "see that the Cluster's nodes run and can be reached",
		})
	}
	for _, m := range masters {
		f := b.notifications(ctx, m)
		f.About, f.Servers = "notifications", m.Options().Addr
		x.Findings = append(x.Findings, f)
	}
	return x, ctx.Err()
}

func (b *Backend) notifications(ctx context.Context, s server) admin.Finding {
	config, err := s.ConfigGet(ctx, setting).Result()
	flags, shown := config[setting]
	if err != nil || !shown {
		return b.testServer(ctx, s, err)
	}
	all, lacking := merged(flags)
	if !lacking {
		return admin.Finding{Text: fmt.Sprintf("the server tells of expiries: %s is %q", setting, flags)}
	}
	// Setting it to its present value changes nothing, and tells whether workers may set it.
	if err := s.ConfigSet(ctx, setting, flags).Err(); err != nil {
		return b.noEvents(fmt.Errorf("%s is %q and cannot be set: %w", setting, flags, err))
	}
	return admin.Finding{
		Severity: admin.Note,
		Text:     fmt.Sprintf("%s is %q: expiries are not told until the first worker sets it to %q, and again after a restart", setting, flags, all),
		Remedy:   remedy,
	}
}

// testServer tests a server that does not show the setting.
func (b *Backend) testServer(ctx context.Context, s server, err error) admin.Finding {
	heard := probe(ctx, s, b.listener.prefix)
	if heard == nil {
		return admin.Finding{Text: "the server tells of expiries: it does not show how it is set up, and a key that expired was told"}
	}
	if err == nil {
		err = errHidden
	}
	return b.noEvents(fmt.Errorf("%w: %w", err, heard))
}

func (b *Backend) noEvents(err error) admin.Finding {
	return admin.Finding{
		Severity: admin.Warning,
		Text:     fmt.Sprintf("workers get no expiries, so that messages wait for the sweep, every %v: %v", b.traits.Sweep, err),
		Remedy:   remedy,
	}
}
