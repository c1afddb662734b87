package demo

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/delayq/delayq"
	"github.com/delayq/delayq/cmd/delayq/internal/human"
)

// finish judges a run that ended with err and prints the summary.
func (r *run) finish(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		err = ErrInterrupted
	}
	if err == nil {
		err = r.countLeft(ctx)
	}
	whole := err == nil
	if !whole {
		r.withdraw(ctx)
	}
	sum, lost := r.ledger.close(whole)
	r.showLost(lost)
	r.say.summary(sum)
	err = errors.Join(err, r.queue.Close(), r.say.failure())
	if sum.broken() {
		return errors.Join(ErrBroken, err)
	}
	return err
}

// countLeft looks for messages that are settled by our notes and not by the store's.
func (r *run) countLeft(ctx context.Context) error {
	n, err := count(ctx, r.queue)
	if err != nil {
		return fmt.Errorf("counting what is left: %w", err)
	}
	r.ledger.left(n)
	return nil
}

const withdrawWithin = 2 * time.Second

// withdraw cancels messages that the demo no longer waits for. A store that outlives the demo would
// hand them to the queue's next user.
func (r *run) withdraw(ctx context.Context) {
	open := r.ledger.openIDs()
	if len(open) == 0 {
		return
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), withdrawWithin)
	defer cancel()
	back := 0
	for _, id := range open {
		if r.takeBack(ctx, r.names.id(id)) == nil {
			back++
		}
	}
	r.say.plain(fmt.Sprintf("not handled yet: %s; taken back out of the queue: %d", human.Count(len(open), "message"), back))
}

func (r *run) takeBack(ctx context.Context, id string) error {
	err := r.queue.Cancel(ctx, id)
	if errors.Is(err, delayq.ErrNotFound) {
		err = r.queue.Dead().Delete(ctx, id)
	}
	return err
}

const mostShown = 10

func (r *run) showLost(lost []string) {
	for i, id := range lost {
		if i == mostShown {
			r.say.plain(fmt.Sprintf("… and %d more", len(lost)-i))
			return
		}
		r.say.broken(r.name(id), "lost: pushed, and never handled")
	}
}
