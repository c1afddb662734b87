package demo

import (
	"context"
	"fmt"
	"strings"
	"sync/atomic"
	"time"

	"github.com/delayq/delayq"
	"github.com/delayq/delayq/cmd/delayq/internal/jsonl"
)

var poisonMessage = scene{
	title: "A message that always fails is set aside, and brought back once the bug is fixed",
	scale: 1,
	needs: []delayq.Feature{delayq.Redriving, delayq.CountingAttempts},
	play:  playPoison,
}

const (
	poisonTries = 3
	poisonRetry = 300 * time.Millisecond
	invoices    = 4
	poisoned    = 3 // the number of the bad one
	invoiceDue  = 200 * time.Millisecond
	poll        = 5 * time.Millisecond
)

func playPoison(ctx context.Context, s *stage) error {
	wait := s.real(poisonRetry)
	p := &poisonPlay{stage: s, id: invoiceID(s, poisoned), wait: wait}
	return s.serve(ctx, s.attend(p.invoice), p.script,
		delayq.MaxAttempts(poisonTries),
		delayq.Retry(delayq.Backoff{Base: wait, Max: wait, Factor: 1}))
}

func invoiceID(s *stage, n int) string { return fmt.Sprintf("%sinvoice-%d", s.tag, n) }

// poisonPlay is one performance of the scene.
type poisonPlay struct {
	*stage
	id    string
	wait  time.Duration
	fixed atomic.Bool
	tries atomic.Int32
}

func (p *poisonPlay) script(ctx context.Context) error {
	p.note(calm, "invoices", fmt.Sprintf("%d pushed, due in %v; one of them breaks the program", invoices, invoiceDue))
	for n := 1; n <= invoices; n++ {
		if err := p.push(ctx, invoiceID(p.stage, n), fmt.Sprintf("invoice %d", n), invoiceDue); err != nil {
			return err
		}
	}
	letter, err := p.deadLetter(ctx)
	if letter == nil || err != nil {
		return err
	}
	p.ledger.deadLettered(p.id)
	reason, stack, _ := strings.Cut(letter.Reason, "\n")
	p.note(trouble, p.id, fmt.Sprintf("is a dead letter after %d attempts: %s (and %d lines of stack)",
		letter.Attempts, jsonl.Shown(reason), strings.Count(stack, "\n")))
	p.fixed.Store(true)
	p.note(calm, p.id, "the bug is fixed; the dead letter goes back into the queue")
	p.ledger.redriven(p.id)
	return p.queue.Dead().Redrive(ctx, p.names.id(p.id))
}

func (p *poisonPlay) invoice(d *delayq.Delivery, name string, late time.Duration) error {
	if name == p.id && !p.fixed.Load() {
		p.fail(d)
	}
	p.note(good, name, fmt.Sprintf("attempt %d: sent%s", d.Attempt, lateText(late)))
	return nil
}

func (p *poisonPlay) fail(d *delayq.Delivery) {
	again := ""
	if p.tries.Add(1) < poisonTries {
		p.ledger.failed(p.id, time.Now().Add(p.wait))
		again = fmt.Sprintf("; again in %v", poisonRetry)
	}
	p.note(trouble, p.id, fmt.Sprintf("attempt %d: the handler panics%s", d.Attempt, again))
	panic("no VAT rate for Atlantis")
}

// deadLetter waits for the message to be among the dead letters; nil when patience has run out.
func (p *poisonPlay) deadLetter(ctx context.Context) (*delayq.DeadLetter, error) {
	for {
		for l, err := range p.queue.Dead().All(ctx) {
			if err != nil || p.names.of(l.ID) == p.id {
				return &l, err
			}
		}
		if _, until := p.ledger.progress(p.Patience); time.Now().After(until) {
			return nil, nil
		}
		if err := sleepUntil(ctx, time.Now().Add(poll)); err != nil {
			return nil, err
		}
	}
}
