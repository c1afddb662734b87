package rabbitmq

import (
	"context"
	"errors"
	"time"

	"github.com/delayq/delayq/backend"
)

// held returns what is under a lease in force, nil when there is none.
func (d *desk) held(l backend.Lease) *holding {
	h := d.leased[l.Token]
	if h == nil || h.busy || h.id != l.ID || !time.Now().Before(h.until) {
		return nil
	}
	return h
}

// settled acknowledges a delivery with the next confirmAcks.
func (d *desk) settled(token backend.Token, h *holding) {
	delete(d.leased, token)
	h.from.unsettled--
	d.tags.ack(h.tag)
}

func (d *desk) ack(ctx context.Context, ls []backend.Lease) []error {
	errs := make([]error, len(ls))
	hs := make([]*holding, len(ls))
	answered := make(chan error, 1)
	if err := d.do(ctx, func() { d.ackHere(ls, hs, errs, answered) }); err != nil {
		return backend.FailAll(len(ls), err)
	}
	if err := d.hear(ctx, answered); err != nil {
		fill(errs, err)
	}
	d.tell(ctx, d.q.marks.settle, hs, errs)
	return errs
}

func (d *desk) ackHere(ls []backend.Lease, hs []*holding, errs []error, answered chan<- error) {
	var last uint64
	for i, l := range ls {
		h := d.held(l)
		if h == nil {
			errs[i] = backend.ErrLeaseLost
			continue
		}
		d.settled(l.Token, h)
		hs[i] = h
		last = max(last, h.tag)
	}
	d.acked = append(d.acked, settling{last, answered})
}

// hear waits for what the broker answers to acks.
func (d *desk) hear(ctx context.Context, answered <-chan error) error {
	select {
	case err := <-answered:
		return err
	case <-ctx.Done():
		return ctx.Err()
	case <-d.ended:
	}
	select {
	case err := <-answered:
		return err
	default:
		return backend.ErrClosed
	}
}

// fill is the outcome of those that have none.
func fill(errs []error, err error) {
	for i := range errs {
		if errs[i] == nil {
			errs[i] = err
		}
	}
}

func (d *desk) extend(ctx context.Context, ls []backend.Lease, lease time.Duration, ends []time.Time) []error {
	if d.gate != nil {
		return d.prolong(ctx, ls, lease, ends)
	}
	errs := make([]error, len(ls))
	err := d.do(ctx, func() {
		until := ceil(time.Now().Add(lease))
		for i, l := range ls {
			if h := d.held(l); h != nil {
				h.until, ends[i] = until, until
				d.endsAt(until)
			} else {
				errs[i] = backend.ErrLeaseLost
			}
		}
	})
	if err != nil {
		return backend.FailAll(len(ls), err)
	}
	return errs
}

// endLeases gives messages back whose lease has ended. The broker counts the attempt.
func (d *desk) endLeases(now time.Time) {
	if now.Before(d.soonest) {
		return // there may be thousands, to be looked at each time that anything happens
	}
	var ended []*holding
	d.soonest = now.Add(time.Hour)
	for token, h := range d.leased {
		switch {
		case h.busy:
		case now.Before(h.until):
			d.endsAt(h.until)
		default:
			delete(d.leased, token)
			h.from.unsettled--
			d.tags.reject(d.ch, h.tag)
			ended = append(ended, h)
		}
	}
	d.letGo(ended)
}

// endsAt notes when a lease ends.
func (d *desk) endsAt(t time.Time) {
	if t.Before(d.soonest) {
		d.soonest = t
	}
}

// replace publishes leased messages as what make says, and acknowledges those that the broker has confirmed. Until then the
// lease does not end by itself; if the publishing fails it goes on. The tombstone store is told of those that were replaced.
func (d *desk) replace(ctx context.Context, ls []backend.Lease, told telling, remake func(int, *record) outgoing) []error {
	errs := make([]error, len(ls))
	hs := make([]*holding, len(ls))
	lasts := make(chan context.Context, 1)
	if err := d.do(ctx, func() { d.seize(ls, hs, errs); lasts <- d.lasts }); err != nil {
		return backend.FailAll(len(ls), err)
	}
	var out []outgoing
	var at []int
	for i, h := range hs {
		if h != nil {
			r := h.record
			out, at = append(out, remake(i, &r)), append(at, i)
		}
	}
	answered := make(chan error, 1)
	published := d.publish(ctx, <-lasts, out)
	err := d.conclude(func() { d.replaced(ls, hs, at, published, errs, answered) })
	if err == nil {
		err = d.hear(ctx, answered)
	}
	if err != nil {
		fill(errs, err)
	}
	d.tell(ctx, told, hs, errs)
	return errs
}

// publish publishes copies of messages while the channel lasts that holds them. What it could not send by then comes again by itself.
func (d *desk) publish(ctx, lasts context.Context, out []outgoing) []error {
	bounded, cancel := context.WithCancel(ctx)
	defer cancel()
	stop := context.AfterFunc(lasts, cancel)
	defer stop()
	errs := d.q.b.pub.publish(bounded, out)
	if ctx.Err() == nil && lasts.Err() != nil {
		for i, err := range errs {
			if errors.Is(err, context.Canceled) {
				errs[i] = errUnknown
			}
		}
	}
	return errs
}

func (d *desk) seize(ls []backend.Lease, hs []*holding, errs []error) {
	d.returning++
	for i, l := range ls {
		if h := d.held(l); h != nil {
			h.busy, hs[i] = true, h
		} else {
			errs[i] = backend.ErrLeaseLost
		}
	}
}

// replaced settles what was published. What a break has taken away meanwhile is there twice now.
func (d *desk) replaced(ls []backend.Lease, hs []*holding, at []int, published, errs []error, answered chan<- error) {
	var last uint64
	for j, i := range at {
		h := hs[i]
		h.busy = false
		d.endsAt(h.until)
		switch {
		case published[j] != nil:
			errs[i] = published[j]
		case d.leased[ls[i].Token] != h:
			errs[i] = errAckUnknown
		default:
			d.settled(ls[i].Token, h)
			last = max(last, h.tag)
		}
	}
	d.acked = append(d.acked, settling{last, answered})
}

// giveBack publishes again what nobody has seen, so that it costs no attempt, and then acknowledges it.
func (d *desk) giveBack(hs []*holding) {
	if len(hs) == 0 {
		return
	}
	d.letGo(hs)
	number, lasts := d.number, d.lasts
	out := d.again(hs)
	d.returning++
	d.over.Go(func() {
		ctx, cancel := context.WithTimeout(lasts, giveBackWithin)
		defer cancel()
		errs := d.q.b.pub.publish(ctx, out)
		_ = d.conclude(func() { d.gaveBack(number, hs, errs) }) // else the broker hands them out again
	})
}

func (d *desk) gaveBack(number uint64, hs []*holding, errs []error) {
	if d.ch == nil || d.number != number {
		return
	}
	for i, h := range hs {
		switch {
		case errs[i] == nil:
			h.from.unsettled--
			d.tags.ack(h.tag)
		case d.subscribed(h.from): // the broker would send it here again at once
			d.early = append(d.early, h)
		default:
			h.from.unsettled--
			d.tags.nack(d.ch, h.tag) // it costs an attempt before RabbitMQ 4.3, but nothing is lost
		}
	}
}
