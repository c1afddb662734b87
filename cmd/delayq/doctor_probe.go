package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/delayq/delayq"
	"github.com/delayq/delayq/backend/admin"
)

const (
	probeDelay  = 300 * time.Millisecond
	probeWithin = 15 * time.Second // for each step
	probeLate   = time.Second      // beyond the backend's declared tolerance
	probeTries  = 3                // for a message that came late: a moment of load is no finding
)

// probe sends a message through a queue of its own.
func (d *diagnosis) probe(ctx context.Context, b *fenced) admin.Finding {
	f := admin.Finding{About: "probe"}
	var p prober
	var late time.Duration
	var err error
	for try := 0; try == 0 || try < probeTries && err == nil && late > probeLate+b.Traits().Sweep; try++ {
		p = prober{delay: probeDelay}
		err = p.run(ctx, b, d.prefix+"probe")
		late = p.received.Sub(p.due)
	}
	var refused *delayq.InvalidError
	switch {
	case errors.As(err, &refused) && refused.What == "body":
		f.Severity, f.Text = admin.Note, "no message was sent: the queue takes bodies of its own form only, here "+refused.Allowed
		f.Remedy = "send one of yours: delayq push"
		return f
	case err != nil:
		f.Severity, f.Text = admin.Problem, "a message did not get through: "+plain(err)
		f.Remedy = "see to the other findings first; then --verbose shows more"
		return f
	case late < 0:
		f.Severity, f.Remedy = admin.Problem, "look for a clock that runs fast or was set while this ran; try again"
	case late > probeLate+b.Traits().Sweep:
		f.Severity, f.Remedy = admin.Warning, "look for load on the server, the network and this machine; try again"
	}
	f.Text = fmt.Sprintf("a message was stored in %v, came %v after it was due, and was acknowledged in %v",
		shortly(p.pushed.Sub(p.began)), shortly(late), shortly(p.acked))
	return f
}

func shortly(d time.Duration) time.Duration { return d.Round(10 * time.Microsecond) }

// A prober notes when things happened.
type prober struct {
	delay                        time.Duration
	began, pushed, due, received time.Time
	acked                        time.Duration
}

func (p *prober) run(ctx context.Context, b *fenced, queue string) (err error) {
	ctx, cancel := context.WithTimeout(ctx, 4*probeWithin)
	defer cancel()
	q, err := delayq.New(ctx, queue, delayq.WithBackend(b), delayq.WithLogger(b.scratch.log))
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, q.Close()) }()
	if err := p.push(ctx, q); err != nil {
		return err
	}
	return p.take(ctx, q)
}

// push pushes with a delay, or with none where the backend has delays of its own only. The body is
// text and JSON, so that most codecs take it.
func (p *prober) push(ctx context.Context, q delayq.Queue) error {
	ctx, cancel := context.WithTimeout(ctx, probeWithin)
	defer cancel()
	p.began = time.Now()
	_, err := q.Push(ctx, []byte(`"delayq doctor"`), delayq.After(p.delay))
	if errors.Is(err, delayq.ErrInvalid) {
		p.delay, p.began = 0, time.Now()
		_, err = q.Push(ctx, []byte(`"delayq doctor"`))
	}
	p.pushed = time.Now()
	p.due = p.began.Add(p.delay)
	return err
}

func (p *prober) take(ctx context.Context, q delayq.Queue) error {
	ctx, cancel := context.WithTimeout(ctx, probeWithin)
	defer cancel()
	m, err := q.Receive(ctx)
	p.received = time.Now()
	if err != nil {
		return err
	}
	err = m.Ack(ctx)
	p.acked = time.Since(p.received)
	return err
}
