package delayq_test

import (
	"context"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/delayq/delayq"
	"github.com/delayq/delayq/internal/queuetest"
)

// receiveFails makes Receive fail as long as away says, and keeps when it was tried.
func receiveFails(s *seam, away func(try int) bool) *[]time.Time {
	var tried []time.Time
	s.before = func(_ context.Context, op string) error {
		if op != "receive" {
			return nil
		}
		tried = append(tried, time.Now())
		if away(len(tried)) {
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
		q := newQueue(t, s.option(), log.Logger())
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
		r := start(t, q, returning(nil), delayq.Workers(8))
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
	queuetest.Cases(t, stops, func(t *testing.T, stop func(*testing.T, delayq.Queue, *running)) {
		s := newSeam()
		s.before = failing("receive")
		q := newQueue(t, s.option())
		r := start(t, q, returning(nil))
		time.Sleep(time.Minute + 1)
		wantStop(t, q, r, stop, 0)
	})
}

// The message is not lost: it comes back when the lease ends, and only the log has the reason.
func TestFailureToSettleIsLogged(t *testing.T) {
	type test struct {
		result error
		want   delayq.Stats
		opts   []delayq.ConsumeOption
	}
	for op, tt := range map[string]test{
		"ack":  {},
		"nack": {errHandler, delayq.Stats{Scheduled: 1}, []delayq.ConsumeOption{every(24 * time.Hour)}},
		"dead": {errHandler, delayq.Stats{Dead: 1}, []delayq.ConsumeOption{delayq.MaxAttempts(1)}},
	} {
		t.Run(op, func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				var log journal
				s := newSeam()
				s.before = once(op)
				q := newQueue(t, s.option(), log.Logger())
				push(t, q, delayq.ID("17"))
				consume(t, q, time.Hour, returning(tt.result), tt.opts...)
				wantCounts(t, q, tt.want)
				log.Want(t, "settling failed", "id=17", "attempt=1", errStore.Error())
			})
		})
	}
}
