package consumer

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/delayq/delayq/backend"
	"github.com/delayq/delayq/internal/telemetry"
)

var errFailed = errors.New("no such order")

func failure() *Failure { return &Failure{Err: errFailed, Reason: errFailed.Error()} }

// failing returns a failure that change has changed.
func failing(change func(*Failure)) *Failure {
	f := failure()
	change(f)
	return f
}

func drops(f *Failure)    { f.Drop = true }
func dies(f *Failure)     { f.Dead = true }
func panics(f *Failure)   { f.Kind = telemetry.FailedPanic }
func asksHour(f *Failure) { d := time.Hour; f.RetryAfter = &d }

func TestDecide(t *testing.T) {
	t.Parallel()
	const (
		policy  = 7 * time.Second // the retry policy's result
		timeout = time.Minute
		reason  = "no such order"
		tooLong = "handler took too long (1m0s): no such order"
	)
	for name, tt := range map[string]struct {
		end  ending
		want decision
	}{
		"success":                              {ending{}, decision{action: Acked}},
		"success after the timeout":            {ending{cause: ErrTimeout}, decision{action: Acked}},
		"success after the drain":              {ending{cause: ErrDrain}, decision{action: Acked}},
		"success after the lease":              {ending{cause: backend.ErrLeaseLost}, decision{action: Acked}},
		"success, settled by the handler":      {ending{settled: true}, decision{action: Settled}},
		"success of the last attempt":          {ending{attempt: 3, maxAttempts: 3}, decision{action: Acked}},
		"failure":                              {ending{failure: failure()}, decision{action: Retried, delay: policy, kind: telemetry.FailedHandler, reason: reason}},
		"failure, settled by the handler":      {ending{failure: failure(), settled: true}, decision{action: Settled, kind: telemetry.FailedHandler, reason: reason}},
		"failure before the last attempt":      {ending{failure: failure(), attempt: 2, maxAttempts: 3}, decision{action: Retried, delay: policy, kind: telemetry.FailedHandler, reason: reason}},
		"failure of the last attempt":          {ending{failure: failure(), attempt: 3, maxAttempts: 3}, decision{action: Died, kind: telemetry.FailedHandler, reason: reason}},
		"failure beyond the last attempt":      {ending{failure: failure(), attempt: 9, maxAttempts: 3}, decision{action: Died, kind: telemetry.FailedHandler, reason: reason}},
		"failure without a limit":              {ending{failure: failure(), attempt: 1 << 40}, decision{action: Retried, delay: policy, kind: telemetry.FailedHandler, reason: reason}},
		"ErrDrop":                              {ending{failure: failing(drops)}, decision{action: Dropped, kind: telemetry.FailedHandler, reason: reason}},
		"ErrDrop of the last attempt":          {ending{failure: failing(drops), attempt: 3, maxAttempts: 3}, decision{action: Dropped, kind: telemetry.FailedHandler, reason: reason}},
		"ErrDeadLetter":                        {ending{failure: failing(dies)}, decision{action: Died, kind: telemetry.FailedHandler, reason: reason}},
		"RetryAfter":                           {ending{failure: failing(asksHour)}, decision{action: Retried, delay: time.Hour, kind: telemetry.FailedHandler, reason: reason}},
		"RetryAfter of the last attempt":       {ending{failure: failing(asksHour), attempt: 3, maxAttempts: 3}, decision{action: Died, kind: telemetry.FailedHandler, reason: reason}},
		"panic":                                {ending{failure: failing(panics)}, decision{action: Retried, delay: policy, kind: telemetry.FailedPanic, reason: reason}},
		"panic of the last attempt":            {ending{failure: failing(panics), attempt: 3, maxAttempts: 3}, decision{action: Died, kind: telemetry.FailedPanic, reason: reason}},
		"panic after the timeout":              {ending{failure: failing(panics), cause: ErrTimeout}, decision{action: Retried, delay: policy, kind: telemetry.FailedPanic, reason: tooLong}},
		"timeout":                              {ending{failure: failure(), cause: ErrTimeout}, decision{action: Retried, delay: policy, kind: telemetry.FailedTimeout, reason: tooLong}},
		"timeout of the last attempt":          {ending{failure: failure(), cause: ErrTimeout, attempt: 3, maxAttempts: 3}, decision{action: Died, kind: telemetry.FailedTimeout, reason: tooLong}},
		"ErrDrop after the timeout":            {ending{failure: failing(drops), cause: ErrTimeout}, decision{action: Dropped, kind: telemetry.FailedTimeout, reason: tooLong}},
		"lease lost":                           {ending{failure: failure(), cause: backend.ErrLeaseLost}, decision{action: Lost, kind: telemetry.FailedLeaseLost, reason: reason}},
		"lease lost in the last attempt":       {ending{failure: failure(), cause: backend.ErrLeaseLost, attempt: 3, maxAttempts: 3}, decision{action: Lost, kind: telemetry.FailedLeaseLost, reason: reason}},
		"lease lost, settled by the handler":   {ending{failure: failure(), cause: backend.ErrLeaseLost, settled: true}, decision{action: Settled, kind: telemetry.FailedLeaseLost, reason: reason}},
		"stopped":                              {ending{failure: failure(), cause: ErrDrain, held: time.Hour - 1}, decision{action: Returned, stopped: true, kind: telemetry.FailedStopped, reason: reason}},
		"stopped in the last attempt":          {ending{failure: failure(), cause: ErrDrain, held: time.Hour - 1, attempt: 3, maxAttempts: 3}, decision{action: Returned, stopped: true, kind: telemetry.FailedStopped, reason: reason}},
		"stopped with ErrDrop":                 {ending{failure: failing(drops), cause: ErrDrain}, decision{action: Returned, stopped: true, kind: telemetry.FailedStopped, reason: reason}},
		"stopped after an hour":                {ending{failure: failure(), cause: ErrDrain, held: time.Hour}, decision{action: Retried, stopped: true, kind: telemetry.FailedStopped, reason: reason}},
		"stopped after an hour, last attempt":  {ending{failure: failure(), cause: ErrDrain, held: time.Hour, attempt: 3, maxAttempts: 3}, decision{action: Died, stopped: true, kind: telemetry.FailedStopped, reason: reason}},
		"stopped, clock set back":              {ending{failure: failure(), cause: ErrDrain, held: -time.Hour}, decision{action: Returned, stopped: true, kind: telemetry.FailedStopped, reason: reason}},
		"handed out more often than allowed":   {ending{failure: abandoned(3), attempt: 4, maxAttempts: 3}, decision{action: Died, kind: telemetry.FailedAbandoned, reason: "3 attempts ended unsettled"}},
		"handler ended its goroutine":          {ending{failure: &exited}, decision{action: Retried, delay: policy, kind: telemetry.FailedExit, reason: "handler ended its goroutine (runtime.Goexit)"}},
		"context ended for the user's reasons": {ending{failure: failure(), cause: errors.New("cancelled")}, decision{action: Retried, delay: policy, kind: telemetry.FailedHandler, reason: reason}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			tt.end.timeout = timeout
			asked := 0
			got := decide(tt.end, func(err error) time.Duration {
				asked++
				if err.Error() != tt.want.reason {
					t.Errorf("the policy is asked about %q, want %q", err, tt.want.reason)
				}
				return policy
			})
			if (tt.want.delay == policy) != (asked == 1) || asked > 1 {
				t.Errorf("the policy is asked %d times", asked)
			}
			switch {
			case (got.err == nil) != (tt.end.failure == nil):
				t.Errorf("error %v", got.err)
			case got.err != nil && got.err.Error() != tt.want.reason:
				t.Errorf("error %v, want %s", got.err, tt.want.reason)
			case errors.Is(tt.end.cause, ErrTimeout) && got.err != nil && !errors.Is(got.err, ErrTimeout):
				t.Errorf("error %v is not ErrTimeout", got.err)
			}
			got.err = nil
			if got != tt.want {
				t.Errorf("got  %+v\nwant %+v", got, tt.want)
			}
		})
	}
}

// Every kind that decide returns is one that metrics begin at 0.
func TestFailureKindsAreComplete(t *testing.T) {
	t.Parallel()
	kinds := make(map[string]bool)
	for _, kind := range telemetry.FailureKinds {
		if kinds[kind] {
			t.Errorf("kind %s is listed twice", kind)
		}
		kinds[kind] = true
	}
	for _, cause := range []error{nil, ErrTimeout, ErrDrain, backend.ErrLeaseLost, fmt.Errorf("wrapped: %w", ErrDrain)} {
		for _, f := range []*Failure{failure(), failing(panics), abandoned(1), &exited} {
			if d := decide(ending{failure: f, cause: cause}, func(error) time.Duration { return 0 }); !kinds[d.kind] {
				t.Errorf("kind %q after %v is not listed", d.kind, cause)
			}
		}
	}
}
