package main

import (
	"context"
	"crypto/rand"
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
	Run   string `json:"run"`
	Order int    `json:"order"`
}

type shop struct {
	queue  delayq.Queue
	timers *delayq.TypedQueue[about]
	settings
	log *slog.Logger
	run string // tells this process' orders from those of an earlier one; a database needs none

	mu     sync.Mutex // held for no call of the queue
	placed int
	orders map[int]*order
}

func newShop(q delayq.Queue, s settings, log *slog.Logger) *shop {
	return &shop{
		queue: q, timers: delayq.Typed[about](q, delayq.JSON), settings: s, log: log,
		run: rand.Text(), orders: make(map[int]*order),
	}
}

var (
	errNoOrder = errors.New("no such order")
	errState   = errors.New("not in this state")
)

// place sets the timer before it stores the order. If the process dies in between, the timer finds
// no order and is dropped. The other way round, nobody would ever cancel the order.
func (s *shop) place(ctx context.Context, item string) (order, error) {
	s.mu.Lock()
	s.placed++
	o := &order{ID: s.placed, Item: item, State: unpaid}
	s.mu.Unlock()
	if err := s.setTimer(ctx, o.ID, paymentTimeout, s.unpaid); err != nil {
		return order{}, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.orders[o.ID] = o
	return *o, nil
}

// timerID derives a timer's id from its order, so that a repeated push sets no second timer.
func (s *shop) timerID(id int, what string) string { return fmt.Sprintf("%s-%s-%d", what, s.run, id) }

// setTimer pushes the message that comes when nothing happens to the order.
func (s *shop) setTimer(ctx context.Context, id int, what string, d time.Duration) error {
	_, err := s.timers.Push(ctx, about{s.run, id}, delayq.ID(s.timerID(id, what)), delayq.Type(what), delayq.After(d))
	if errors.Is(err, delayq.ErrDuplicate) {
		return nil
	}
	return err
}

// cancelTimer saves a message that would change nothing: so a failure is no error.
func (s *shop) cancelTimer(ctx context.Context, id int, what string) {
	if err := s.queue.Cancel(ctx, s.timerID(id, what)); err != nil {
		s.log.Info("the timer comes and is ignored", "order", id, "why", err)
	}
}

// change takes an order from one state to the next, as one statement of a database does.
func (s *shop) change(id int, from, to state, stars int) (order, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	o := s.orders[id]
	if o == nil {
		return order{}, errNoOrder
	}
	if o.State != from {
		return *o, fmt.Errorf("order %d is %s: %w", id, o.State, errState)
	}
	o.State, o.Stars = to, stars
	return *o, nil
}

// pay cancels the timer after it has stored the payment. The other way round, a payment that fails
// would leave an order that nobody cancels.
func (s *shop) pay(ctx context.Context, id int) (order, error) {
	o, err := s.change(id, unpaid, paid, 0)
	if err == nil {
		s.cancelTimer(ctx, id, paymentTimeout)
	}
	return o, err
}

func (s *shop) ship(ctx context.Context, id int) (order, error) {
	if o, err := s.get(id); err != nil || o.State != paid {
		return s.change(id, paid, shipped, 0) // says why not
	}
	if err := s.setTimer(ctx, id, reviewDefault, s.unreviewed); err != nil {
		return order{}, err
	}
	return s.change(id, paid, shipped, 0)
}

func (s *shop) review(ctx context.Context, id, stars int) (order, error) {
	o, err := s.change(id, shipped, reviewed, stars)
	if err == nil {
		s.cancelTimer(ctx, id, reviewDefault)
	}
	return o, err
}

// handlers run when nothing happened in time, one for each type of message.
func (s *shop) handlers() delayq.Handler {
	return delayq.Router{
		paymentTimeout: delayq.TypedHandler(delayq.JSON, func(_ context.Context, a about, _ *delayq.Delivery) error {
			return s.late(a, unpaid, cancelled, 0)
		}),
		reviewDefault: delayq.TypedHandler(delayq.JSON, func(_ context.Context, a about, _ *delayq.Delivery) error {
			return s.late(a, shipped, reviewed, 5)
		}),
	}.Handle
}

// late drops timers of unknown orders, and of orders that have moved on. So it is idempotent.
func (s *shop) late(a about, from, to state, stars int) error {
	if a.Run != s.run {
		return fmt.Errorf("%w: order %d is of an earlier run", delayq.ErrDrop, a.Order)
	}
	if _, err := s.change(a.Order, from, to, stars); err != nil {
		return fmt.Errorf("%w: %w", delayq.ErrDrop, err)
	}
	s.log.Info("nothing happened in time", "order", a.Order, "was", from, "is", to)
	return nil
}

func (s *shop) get(id int) (order, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if o := s.orders[id]; o != nil {
		return *o, nil
	}
	return order{}, errNoOrder
}
