package peers

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/delayq/delayq"
	"github.com/delayq/delayq/bench/internal/load"
	"github.com/delayq/delayq/internal/testenv"
	interop "github.com/delayq/delayq/interop/redisson"
)

const redissonRelease = "4.7.0"

func lacksJava() error {
	_, java := testenv.Java()
	_, maven := testenv.Maven()
	return errors.Join(java, maven)
}

// redissonJava pushes, takes and times messages in Java, by threads where others have goroutines.
type redissonJava struct {
	load.Java
	redisServer
}

func openRedissonJava(tb testing.TB) system {
	tb.Helper()
	j := load.OpenJava(tb, redissonRelease)
	return redissonJava{j, redisServer{j.Redis}}
}

func (s redissonJava) push(context.Context, delayq.Message) error { return errors.ErrUnsupported }

func (s redissonJava) pushAll(context.Context, []delayq.Message) error { return errors.ErrUnsupported }

func (s redissonJava) consume(tb testing.TB, _ func([]byte)) (stop func()) {
	tb.Fatal(errors.ErrUnsupported)
	return nil
}

// left reads the keys of both its queues.
func (s redissonJava) left(ctx context.Context) (int64, error) {
	waiting, err := s.redisServer.Control.ZCard(ctx, "redisson_delay_queue_timeout:{bench}").Result()
	if err != nil {
		return 0, fmt.Errorf("counting values: %w", err)
	}
	ready, err := s.redisServer.Control.LLen(ctx, "bench").Result()
	return waiting + ready, err
}

func (s redissonJava) pushMany(tb testing.TB, n, threads int) {
	tb.Helper()
	s.Offer(tb, interop.Load{Count: n, MinDelay: time.Hour, MaxDelay: 24 * time.Hour, Threads: threads, Prefix: "push"})
}

// drainMany gives up when Java has had its time, and counts the messages that have come until then.
func (s redissonJava) drainMany(tb testing.TB, n int, due time.Time) (_ burst, inTime bool) {
	tb.Helper()
	s.Offer(tb, interop.Load{Count: n, Due: due, Threads: 64, Prefix: "burst"})
	if time.Now().After(due) {
		return burst{}, false
	}
	consumer, stop := s.Workers(tb)
	defer stop()
	late := load.LateInJava(tb, consumer, n, due.Add(javaPatience), func(string) (time.Time, bool) { return due, true })
	b := burst{Outcome: load.Outcome{Late: late}, unfinished: n - len(late)}
	if len(late) > 0 {
		b.timed(due, due.Add(slices.Min(late)), due.Add(slices.Max(late)))
	}
	return b, true
}

// javaPatience bounds a burst, of which the whole would take minutes.
const javaPatience = 6 * time.Second

// lateMany has enough threads to keep the pace.
func (s redissonJava) lateMany(tb testing.TB) load.Outcome {
	tb.Helper()
	consumer, stop := s.Workers(tb)
	defer stop()
	n := s.OfferPlan(tb, load.Pushers)
	late := load.LateInJava(tb, consumer, n, time.Now().Add(3*load.LeastDelay()+load.Patience), load.Stamp)
	return load.Outcome{Late: late, Lost: n - len(late)}
}

// cancelSome cancels no more than 30, for each of them is looked for from one end.
func (s redissonJava) cancelSome(tb testing.TB, pending, n int) time.Duration {
	tb.Helper()
	s.Offer(tb, interop.Load{Count: pending, MinDelay: time.Hour, MaxDelay: 24 * time.Hour, Threads: 64, Prefix: "cancel"})
	n = min(n, 30)
	start := time.Now()
	for i := range n {
		value := fmt.Sprint("cancel-", i*(pending/n))
		value += strings.Repeat(".", load.BodySize-len(value))
		removed, err := s.Remove(context.Background(), value)
		load.Must(tb, err)
		if !removed {
			tb.Fatalf("Redisson does not find %s", value)
		}
	}
	return time.Since(start) / time.Duration(n)
}
