package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/delayq/delayq"
)

// The types of messages.
const (
	paymentTimeout = "payment-timeout"
	reviewDefault  = "review-default"
)

// order is an order's state.
type order struct {
	ID    int    `json:"id"`
	Item  string `json:"item"`
	State state  `json:"state"`
	Stars int    `json:"stars,omitempty"`

	reminder string // the message that waits for the next step not to be taken
}

type state string

const (
	unpaid    state = "unpaid"
	paid      state = "paid"
	shipped   state = "shipped"
	reviewed  state = "reviewed"
	cancelled state = "cancelled"
)

// about is the body of a message.
type about struct {
	Order int `json:"order"`
}

type shop struct {
	queue  delayq.Queue
	remind *delayq.TypedQueue[about]
	settings
	log *slog.Logger

	mu     sync.Mutex
	orders []*order
}

func newShop(q delayq.Queue, s settings, log *slog.Logger) *shop {
	return &shop{queue: q, remind: delayq.Typed[about](q, delayq.JSON), settings: s, log: log}
}

var (
	errNoOrder = errors.New("no such order")
	errState   = errors.New("not in this state")
)

// place stores an order, which waits for its payment.
func (s *shop) place(ctx context.Context, item string) (order, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	o := &order{ID: len(s.orders) + 1, Item: item, State: unpaid}
	if err := s.wait(ctx, o, paymentTimeout, s.unpaid); err != nil {
		return order{}, err
	}
	s.orders = append(s.orders, o)
	return *o, nil
}

// wait pushes the message that comes when nothing happens to the order.
func (s *shop) wait(ctx context.Context, o *order, what string, d time.Duration) (err error) {
	o.reminder, err = s.remind.Push(ctx, about{o.ID}, delayq.Type(what), delayq.After(d))
	return err
}

// step takes an order from one state to the next and takes the message back that waited for that
// not to happen. One that cannot be taken back finds the order in its new state, and does nothing.
func (s *shop) step(ctx context.Context, id int, from, to state, then func(*order) error) (order, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if id < 1 || id > len(s.orders) {
		return order{}, errNoOrder
	}
	o := s.orders[id-1]
	if o.State != from {
		return *o, fmt.Errorf("order %d is %s: %w", id, o.State, errState)
	}
	if o.reminder != "" {
		if err := s.queue.Cancel(ctx, o.reminder); err != nil {
			s.log.Info("the message comes and is ignored", "order", id, "why", err)
		}
		o.reminder = ""
	}
	if then != nil {
		if err := then(o); err != nil {
			return *o, err
		}
	}
	o.State = to
	return *o, nil
}

func (s *shop) pay(ctx context.Context, id int) (order, error) {
	return s.step(ctx, id, unpaid, paid, nil)
}

func (s *shop) ship(ctx context.Context, id int) (order, error) {
	return s.step(ctx, id, paid, shipped, func(o *order) error {
		return s.wait(ctx, o, reviewDefault, s.unreviewed)
	})
}

func (s *shop) review(ctx context.Context, id, stars int) (order, error) {
	return s.step(ctx, id, shipped, reviewed, func(o *order) error {
		o.Stars = stars
		return nil
	})
}

// handlers run when nothing happened in time, one for each type of message.
func (s *shop) handlers() delayq.Handler {
	return delayq.Router{
		paymentTimeout: delayq.Decoded(delayq.JSON, func(_ context.Context, a about, _ *delayq.Delivery) error {
			return s.late(a.Order, unpaid, cancelled, 0)
		}),
		reviewDefault: delayq.Decoded(delayq.JSON, func(_ context.Context, a about, _ *delayq.Delivery) error {
			return s.late(a.Order, shipped, reviewed, 5)
		}),
	}.Handle
}

// late is idempotent: a message may come twice, or when its order has moved on.
func (s *shop) late(id int, from, to state, stars int) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if id < 1 || id > len(s.orders) {
		return fmt.Errorf("%w: order %d is of an earlier run", delayq.ErrDrop, id)
	}
	if o := s.orders[id-1]; o.State == from {
		o.State, o.Stars, o.reminder = to, stars, ""
		s.log.Info("nothing happened in time", "order", id, "was", from, "is", to)
	}
	return nil
}

func (s *shop) get(id int) (order, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if id < 1 || id > len(s.orders) {
		return order{}, errNoOrder
	}
	return *s.orders[id-1], nil
}
