package bench

import (
	"context"
	"errors"
	"strconv"
	"testing"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"

	"github.com/delayq/delayq"
	"github.com/delayq/delayq/bench/internal/load"
	"github.com/delayq/delayq/rabbitmq"
)

// BenchmarkRabbitLateness measures how late messages are by each way to wait: 2,000 a second,
// random delays of 1 to 4 s, 32 workers, 5,000 messages a turn and two turns.
//
//	levels          any delay to the millisecond; goal for levels-late-p99-ms: 40
//	grain           the same with Grain(16ms), which itself makes up to 16 ms of lateness
//	buckets         Buckets, 50 of them, 60 ms apart
//	classic         levels with Classic, which may lose messages
//	queues          by hand, as textbooks do it: a queue for each of these 50 delays,
//	                dead-lettering at least once into the queue that is consumed
//	classic-queues  the same with classic queues, which may lose messages
//
// Lateness counts from just before the push, plus the delay that it asks for; where there are only
// 50 delays it asks for one of them.
func BenchmarkRabbitLateness(b *testing.B) {
	ways := []*way{
		libraryWay(b, "levels"),
		libraryWay(b, "grain", rabbitmq.Grain(16*time.Millisecond)),
		bucketsWay(b),
		libraryWay(b, "classic", rabbitmq.Classic()),
		queuesWay(b, "queues", waiting, quorum()),
		queuesWay(b, "classic-queues", classicWaiting, nil),
	}
	for range load.UnlessShort(2, 1) {
		for _, w := range ways {
			w.late = append(w.late, w.turn(b)...)
		}
	}
	for _, w := range ways {
		load.ReportQuantiles(b, w.name+"-late-", w.late)
	}
	load.OnePass(b)
}

// A way to have messages wait.
type way struct {
	name string
	late []time.Duration

	rounded bool // to a delay of fewDelays
	push    func(body []byte, delay time.Duration) error
	consume func(ctx context.Context, arrived func(body []byte)) error // until ctx ends
}

// fewDelays are the delays that random ones are rounded up to where each needs a queue of its own.
func fewDelays() []time.Duration {
	delays := make([]time.Duration, 50)
	for i := range delays {
		delays[i] = time.Second + time.Duration(i+1)*fewApart
	}
	return delays
}

const fewApart = 60 * time.Millisecond

func (w *way) delays() []time.Duration {
	r := newRand()
	delays := make([]time.Duration, load.UnlessShort(5000, 200))
	for i := range delays {
		delays[i] = time.Second + time.Duration(r.Int64N(int64(load.UnlessShort(3*time.Second, time.Second/5))))
		if w.rounded {
			delays[i] = time.Second + (delays[i] - time.Second).Truncate(fewApart) + fewApart
		}
	}
	return delays
}

// turn pushes at a steady pace, and returns how late the messages were.
func (w *way) turn(b *testing.B) []time.Duration {
	b.Helper()
	delays := w.delays()
	t := load.NewTally(make([]time.Time, len(delays)))
	stop := load.Until(b, 1, func(ctx context.Context, _ int) error { return w.consume(ctx, t.Arrived) })
	load.Pace(b, time.Now(), len(delays), load.Pushers, func(i int) error {
		t.Due[i] = time.Now().Add(delays[i])
		return w.push(t.Message(i).Body, delays[i])
	})
	t.Wait()
	stop()
	o := t.Outcome()
	if o.Twice+o.Lost > 0 {
		b.Fatalf("%s: of %d messages %d came twice, %d never", w.name, len(delays), o.Twice, o.Lost)
	}
	return o.Late
}

func libraryWay(b *testing.B, name string, opts ...rabbitmq.Option) *way {
	b.Helper()
	q := onRabbit(b, ownVhost(b), opts...)
	return &way{
		name: name,
		push: func(body []byte, delay time.Duration) error {
			_, err := q.Push(context.Background(), body, delayq.After(delay))
			return err
		},
		consume: func(ctx context.Context, arrived func([]byte)) error {
			return q.Consume(ctx, func(_ context.Context, d *delayq.Delivery) error {
				arrived(d.Body)
				return nil
			}, delayq.Workers(32))
		},
	}
}

// bucketsWay pushes with a millisecond less than a bucket's delay: due times are whole
// milliseconds, and the remaining time is rounded up to the next bucket. Lateness still counts from
// the bucket's own due time.
func bucketsWay(b *testing.B) *way {
	b.Helper()
	w := libraryWay(b, "buckets", rabbitmq.Buckets(fewDelays()...))
	push := w.push
	w.rounded, w.push = true, func(body []byte, delay time.Duration) error { return push(body, delay-time.Millisecond) }
	return w
}

func classicWaiting(ttl time.Duration, to string) amqp.Table {
	return amqp.Table{"x-message-ttl": ttl.Milliseconds(), "x-dead-letter-exchange": "", "x-dead-letter-routing-key": to}
}

var errRefused = errors.New("the broker refused the message")

// queuesWay has a queue for each delay, made beforehand.
func queuesWay(b *testing.B, name string, args func(time.Duration, string) amqp.Table, to amqp.Table) *way {
	b.Helper()
	r := newRaw(b, ownVhost(b))
	queue := r.declare(b, "raw", to)
	for _, delay := range fewDelays() {
		r.declare(b, nameOf(delay), args(delay, queue))
	}
	return &way{
		name: name, rounded: true,
		push: func(body []byte, delay time.Duration) error {
			c, err := r.publishing.PublishWithDeferredConfirm("", nameOf(delay), true, false, bare(body))
			if err == nil && !c.Wait() {
				err = errRefused
			}
			return err
		},
		consume: func(ctx context.Context, arrived func([]byte)) error { return r.work(ctx, queue, arrived) },
	}
}

func nameOf(delay time.Duration) string { return "raw." + strconv.FormatInt(delay.Milliseconds(), 10) }

// work takes messages until ctx ends, with an ack for each, as 32 workers would.
func (r *raw) work(ctx context.Context, queue string, arrived func(body []byte)) error {
	if r.deliveries == nil {
		if err := r.subscribe(queue, 32); err != nil {
			return err
		}
	}
	for {
		select {
		case d := <-r.deliveries:
			arrived(d.Body)
			if err := d.Ack(false); err != nil {
				return err
			}
		case <-ctx.Done():
			return nil
		}
	}
}
