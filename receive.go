package delayq

import (
	"context"

	"github.com/delayq/delayq/backend"
	"github.com/delayq/delayq/internal/telemetry"
)

func (q *queue) Receive(ctx context.Context) (*Delivery, error) {
	ds, err := q.receive(ctx, 1)
	if err != nil {
		return nil, q.fail("receive", "", err)
	}
	q.observe(ctx, ds)
	return ds[0], nil
}

func (q *queue) ReceiveBatch(ctx context.Context, limit int) ([]*Delivery, error) {
	if err := validLimit(limit); err != nil {
		return nil, q.fail("receive", "", err)
	}
	ds, err := q.receive(ctx, limit)
	q.observe(ctx, ds)
	return ds, q.fail("receive", "", err)
}

// observe records messages that Receive returns.
func (q *queue) observe(ctx context.Context, ds []*Delivery) {
	if q.telemetry == nil {
		return
	}
	now := q.clock.Now()
	observed := make([]telemetry.Delivery, len(ds))
	for i, d := range ds {
		observed[i] = d.observed(now)
	}
	q.telemetry.Delivered(ctx, telemetry.Receive, observed...)
}

func (q *queue) receive(ctx context.Context, limit int) ([]*Delivery, error) {
	if err := validContext(ctx); err != nil {
		return nil, err
	}
	got, err := q.store.Receive(ctx, limit, q.lease)
	if err != nil {
		return nil, err
	}
	all := make([]Delivery, len(got))
	ds := make([]*Delivery, len(got))
	for i := range got {
		ds[i] = &all[i]
		ds[i].take(q, &got[i])
	}
	return ds, nil
}

func (q *queue) validDeliveries(ds []*Delivery) error {
	for _, d := range ds {
		if d == nil || d.q != q {
			return backend.Invalid("delivery", described("nil or of another queue"), "deliveries that this queue handed out")
		}
	}
	return nil
}
