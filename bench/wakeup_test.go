package bench

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/delayq/delayq"
	"github.com/delayq/delayq/bench/internal/load"
	rawdata "github.com/delayq/delayq/bench/internal/raw"
)

// BenchmarkWakeUp measures how long a consumer that waits for its first message takes to get one
// that somebody else pushes and that is due at once, from just before the push until Receive
// returns:
//
//	wake-p50-ms wake-p99-ms wake-max-ms
//
// Pusher and consumer have connections of their own, as two processes have, except on memory, which
// is of one process. Between two messages the consumer waits for 20 ms.
func BenchmarkWakeUp(b *testing.B) {
	overTargets(b, func(b *testing.B, t target) {
		pusher, consumer := t.twice(b)
		messages := load.UnlessShort(300, 10)
		var wakes []time.Duration
		for range messages {
			wakes = append(wakes, wake(b, pusher, consumer))
		}
		load.ReportQuantiles(b, "wake-", wakes)
		rawdata.Lateness(b, "", wakes)
		load.OnePass(b)
	})
}

// twice opens one queue twice, as two processes would.
func (t target) twice(b *testing.B) (pusher, consumer delayq.Queue) {
	b.Helper()
	switch {
	case t.onRedis != nil:
		server := load.OwnRedis(b)
		here, _ := t.connect(b, server)
		there, _ := t.connect(b, server)
		return open(b, here, "bench"), open(b, there, "bench")
	case t.inProcess:
		q := t.queue(b)
		return q, q
	}
	here, there := t.apart(b)
	b.Cleanup(func() { load.Must(b, errors.Join(here.Close(), there.Close())) })
	return open(b, here, "bench"), open(b, there, "bench")
}

func wake(b *testing.B, pusher, consumer delayq.Queue) time.Duration {
	b.Helper()
	const idle = 20 * time.Millisecond
	arrived := make(chan time.Time, 1)
	ended := make(chan error, 1)
	go func() {
		d, err := consumer.Receive(context.Background())
		arrived <- time.Now()
		if err == nil {
			err = d.Ack(context.Background())
		}
		ended <- err
	}()
	time.Sleep(idle) // the benchmark measures a consumer that waits
	start := time.Now()
	_, err := pusher.Push(context.Background(), load.Body)
	load.Must(b, err)
	select {
	case err := <-ended:
		load.Must(b, err)
	case <-time.After(time.Minute):
		b.Fatal("the message is lost")
	}
	return (<-arrived).Sub(start)
}
