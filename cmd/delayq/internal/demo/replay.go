package demo

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/delayq/delayq"
	"github.com/delayq/delayq/cmd/delayq/internal/human"
	"github.com/delayq/delayq/cmd/delayq/internal/jsonl"
)

// chunk is how many messages go to the store at a time.
const chunk = 1000

// replay pushes the messages and handles each as it becomes due.
func (r *run) replay(ctx context.Context, messages []message) error {
	began := time.Now()
	r.announce(messages, began)
	show := func(d *delayq.Delivery, name string, late time.Duration) error {
		story := stretched(time.Since(began), r.Speed)
		r.say.event(stopped, story, r.name(name), jsonl.Shown(string(d.Body))+lateText(late))
		return nil
	}
	return r.serve(ctx, r.attend(show), func(ctx context.Context) error {
		for part := range slices.Chunk(messages, chunk) {
			if err := r.pushAll(ctx, part, began); err != nil {
				return err
			}
		}
		return nil
	})
}

func (r *run) announce(messages []message, began time.Time) {
	if len(messages) == 0 {
		r.say.plain("no messages in " + inputName(r.Input))
		return
	}
	var last time.Duration
	for _, m := range messages {
		last = max(last, m.delay(began, began, r.Speed))
	}
	r.say.plain(fmt.Sprintf("%s from %s on %s at speed %g; the last is due in %s.",
		human.Count(len(messages), "message"), inputName(r.Input), r.where(), r.Speed, human.Brief(last.Round(time.Millisecond))))
	r.say.plain("First column: seconds since the start; second: the same times the speed.\n")
	r.confess(delayq.CountingScheduled)
}

func (r *run) pushAll(ctx context.Context, part []message, began time.Time) error {
	now := time.Now()
	batch, names := make([]delayq.Message, len(part)), make([]string, len(part))
	for i, m := range part {
		names[i] = m.ID
		if m.ID == "" {
			names[i] = fmt.Sprintf("%sline-%d", r.tag, m.line)
		}
		batch[i] = delayq.Message{ID: names[i], Body: m.Body, Headers: m.Headers, Delay: m.delay(began, now, r.Speed)}
		r.ledger.push(names[i], m.Body, now.Add(batch[i].Delay))
	}
	err := r.names.learn(names, func() ([]string, error) { return r.queue.PushBatch(ctx, r.names.unnamed(batch)) })
	return r.pushFailed(err, part, batch)
}

// pushFailed names the first line that the store refused.
func (r *run) pushFailed(err error, part []message, batch []delayq.Message) error {
	if err == nil {
		return nil
	}
	refused := 0
	var some *delayq.BatchError
	if errors.As(err, &some) {
		refused = slices.IndexFunc(some.Errs, func(err error) bool { return err != nil })
		err = some.Errs[refused]
	} else if all := new(delayq.OpError); errors.As(err, &all) {
		refused = max(0, slices.IndexFunc(batch, func(m delayq.Message) bool { return m.ID == all.ID }))
	}
	for i := range batch {
		if some == nil || some.Errs[i] != nil {
			r.ledger.unpush(batch[i].ID)
		}
	}
	return fmt.Errorf("%s:%d: pushing it: %w", inputName(r.Input), part[refused].line, err)
}
