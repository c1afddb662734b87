package delayq_test

import (
	"context"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/delayq/delayq"
	"github.com/delayq/delayq/backend"
)

// receiveFails makes Receive fail as long as failing says, and keeps when it was tried.
func receiveFails(s *seam, failing func(try int) bool) *[]time.Time {
	var tried []time.Time
	s.before = func(_ context.Context, op string) error {
		if op != "receive" {
			return nil
		}
		tried = append(tried, time.Now())
		if failing(len(tried)) {
			return errStore
		}
		return nil
	}
	return &tried
}

func TestReceiveIsTriedAgain(t *testing.T) {
	bubble(t, func(t *testing.T) {
		var log journal
		s := newSeam()
		tried := receiveFails(s, func(try int) bool { return try <= 6 || try == 8 })
		q := newQueue(t, s.option(), log.logger())
		push(t, q)
		push(t, q, delayq.After(time.Hour))
		handled := 0
		consume(t, q, 2*time.Hour, func(context.Context, *delayq.Delivery) error {
			handled++
			return nil
		})
		if handled != 2 {
			t.Errorf("%d messages handled, want 2", handled)
		}

		at := *tried
		for i := 1; i < 7; i++ {
			full := 50 * time.Millisecond << (i - 1)
			if got := at[i].Sub(at[i-1]); got < full/2 || got > full {
				t.Errorf("wait %d is %v, want %v to %v", i, got, full/2, full)
			}
		}
		if got := at[8].Sub(at[7]); got > 50*time.Millisecond {
			t.Errorf("wait after a success is %v, want as at first", got)
		}
		if got := strings.Count(log.String(), "receiving failed"); got != 7 {
			t.Errorf("%d failures in the log, want 7: %s", got, log.String())
		}
	})
}

func TestLongOutageIsNotHammered(t *testing.T) {
	bubble(t, func(t *testing.T) {
		s := newSeam()
		began := time.Now()
		tried := receiveFails(s, func(int) bool { return time.Since(began) < time.Hour })
		q := newQueue(t, s.option())
		push(t, q)
		r := start(t, q, func(context.Context, *delayq.Delivery) error { return nil }, delayq.Workers(8))
		time.Sleep(time.Hour + 5*time.Second)
		synctest.Wait()
		wantCounts(t, q, delayq.Stats{})
		must(t, r.end())
		// With waits between 2.5 and 5 s.
		if n := len(*tried); n > 1500 {
			t.Errorf("store was asked %d times in an hour", n)
		}
	})
}

func TestStopDuringAnOutage(t *testing.T) {
	cases(t, stops, func(t *testing.T, stop func(*testing.T, delayq.Queue, *running)) {
		s := newSeam()
		receiveFails(s, func(int) bool { return true })
		q := newQueue(t, s.option())
		r := start(t, q, func(context.Context, *delayq.Delivery) error { return nil })
		time.Sleep(time.Minute + 1)
		began := time.Now()
		stop(t, q, r)
		must(t, <-r.done)
		if waited := time.Since(began); waited != 0 {
			t.Errorf("stopped within %v, want at once", waited)
		}
	})
}

// The message is not lost: it comes back when the lease ends, and only the log has the reason.
func TestFailureToSettleIsLogged(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		op     string
		result error
		want   delayq.Stats
		opts   []delayq.ConsumeOption
	}{
		{op: "ack"},
		{op: "nack", result: errHandler, want: delayq.Stats{Scheduled: 1}, opts: []delayq.ConsumeOption{every(24 * time.Hour)}},
		{op: "dead", result: errHandler, want: delayq.Stats{Dead: 1}, opts: []delayq.ConsumeOption{delayq.MaxAttempts(1)}},
	} {
		t.Run(tt.op, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				var log journal
				s := newSeam()
				failures := 0
				s.before = func(_ context.Context, op string) error {
					if op == tt.op && failures < 1 {
						failures++
						return errStore
					}
					return nil
				}
				q := newQueue(t, s.option(), log.logger())
				push(t, q, delayq.ID("17"))
				consume(t, q, time.Hour, func(context.Context, *delayq.Delivery) error { return tt.result }, tt.opts...)
				wantCounts(t, q, tt.want)
				for _, part := range []string{"settling failed", "id=17", "attempt=1", errStore.Error()} {
					if !strings.Contains(log.String(), part) {
						t.Errorf("log lacks %q: %s", part, log.String())
					}
				}
			})
		})
	}
}

type panickyPolicy struct{}

func (panickyPolicy) Delay(int, error) time.Duration { panic("no table for this one") }

// A policy that panics costs the message its own delay, not the process.
func TestRetryPolicyPanics(t *testing.T) {
	bubble(t, func(t *testing.T) {
		var log journal
		q := newQueue(t, log.logger())
		push(t, q)
		calls := 0
		consume(t, q, time.Minute, func(_ context.Context, d *delayq.Delivery) error {
			if calls++; d.Attempt == 1 {
				return errHandler
			}
			return nil
		}, delayq.Retry(panickyPolicy{}))
		if calls != 2 || !strings.Contains(log.String(), "no table for this one") {
			t.Errorf("%d calls, want 2; log: %s", calls, log.String())
		}
		wantCounts(t, q, delayq.Stats{})
	})
}

// A limit that the store cannot keep is rejected when the option is given, and left out when it is
// not.
func TestMaxAttemptsWithoutAttempts(t *testing.T) {
	t.Parallel()
	s := newSeam()
	s.traits = lacking(backend.CountingAttempts)
	q := newQueue(t, s.option())
	handler := func(context.Context, *delayq.Delivery) error { return nil }
	wantIs(t, q.Consume(t.Context(), handler, delayq.MaxAttempts(3)), delayq.ErrUnsupported)
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	must(t, q.Consume(ended, handler))
	must(t, q.Consume(ended, handler, delayq.MaxAttempts(0)))
}
