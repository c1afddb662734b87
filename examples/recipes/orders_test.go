package recipes_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/delayq/delayq"
)

// shop takes orders that are cancelled when they are not paid in time.
type shop struct {
	queue   delayq.Queue
	orders  *orders
	timeout time.Duration // 30 minutes, say
}

func timerOf(order string) string { return "payment-timeout-" + order }

// place pushes the timer before it stores the order.
func (s *shop) place(ctx context.Context, order string) error {
	_, err := s.queue.Push(ctx, []byte(order), delayq.ID(timerOf(order)), delayq.After(s.timeout))
	if err != nil && !errors.Is(err, delayq.ErrDuplicate) {
		return fmt.Errorf("setting the timer of order %s: %w", order, err)
	}
	return s.orders.insert(order, "unpaid")
}

// pay cancels the timer after it has stored the payment. The timer may come all the same.
func (s *shop) pay(ctx context.Context, order string) error {
	if _, err := s.orders.change(order, "unpaid", "paid"); err != nil {
		return err
	}
	if err := s.queue.Cancel(ctx, timerOf(order)); err != nil {
		fmt.Println("the timer comes and finds a paid order:", err)
	}
	return nil
}

// expire handles a timer. An order that is paid or unknown stays as it is.
func (s *shop) expire(_ context.Context, d *delayq.Delivery) error {
	changed, err := s.orders.change(string(d.Body), "unpaid", "cancelled")
	if err != nil {
		return err // comes again
	}
	if changed {
		fmt.Printf("order %s was not paid: cancelled\n", d.Body)
	}
	return nil
}

// orders stands for a table of a database.
type orders struct {
	mu    sync.Mutex
	state map[string]string
}

// insert is INSERT INTO orders (id, state) VALUES ($1, $2) ON CONFLICT DO NOTHING.
func (o *orders) insert(order, state string) error {
	o.mu.Lock()
	defer o.mu.Unlock()
	if _, ok := o.state[order]; !ok {
		o.state[order] = state
	}
	return nil
}

// change is UPDATE orders SET state = $3 WHERE id = $1 AND state = $2, and reports whether there was
// such an order.
func (o *orders) change(order, from, to string) (bool, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.state[order] != from {
		return false, nil
	}
	o.state[order] = to
	return true, nil
}

// An order that is not paid in time is cancelled, wherever a process dies.
func Example_orderTimeout() {
	ctx, stop := context.WithCancel(context.Background())
	defer stop()
	q, err := delayq.New(ctx, "orders", delayq.InMemory())
	check(err)
	defer q.Close()
	s := &shop{queue: q, orders: &orders{state: map[string]string{}}, timeout: 10 * time.Millisecond}

	check(s.place(ctx, "17"))
	check(s.place(ctx, "18"))
	check(s.place(ctx, "18")) // the customer clicks twice: one timer, one order
	check(s.pay(ctx, "17"))

	// The process of order 19 dies between its two steps: there is a timer and no order.
	_, err = q.Push(ctx, []byte("19"), delayq.ID(timerOf("19")), delayq.After(s.timeout))
	check(err)

	// The process of order 20 dies after the payment: the timer is not cancelled.
	check(s.place(ctx, "20"))
	_, err = s.orders.change("20", "unpaid", "paid")
	check(err)

	left := 3 // the timers of 18, 19 and 20
	check(q.Consume(ctx, func(ctx context.Context, d *delayq.Delivery) error {
		if left--; left == 0 {
			stop()
		}
		return s.expire(ctx, d)
	}))
	for _, order := range slices.Sorted(maps.Keys(s.orders.state)) {
		fmt.Println(order, s.orders.state[order])
	}
	// Output:
	// order 18 was not paid: cancelled
	// 17 paid
	// 18 cancelled
	// 20 paid
}

func check(err error) {
	if err != nil {
		panic(err)
	}
}
