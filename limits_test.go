package delayq_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/delayq/delayq"
	"github.com/delayq/delayq/backend"
	"github.com/delayq/delayq/internal/queuetest"
)

// takeNone checks that no message is due.
func takeNone(t *testing.T, q delayq.Queue) {
	t.Helper()
	ctx, stop := context.WithTimeout(t.Context(), time.Nanosecond)
	defer stop()
	if d, err := q.Receive(ctx); err == nil {
		t.Errorf("received %v", d)
	}
}

// attemptsOf consumes until all is done or dead, and returns how often the handler failed.
func attemptsOf(t *testing.T, q delayq.Queue, opts ...delayq.ConsumeOption) (n int) {
	t.Helper()
	consume(t, q, time.Hour, func(context.Context, *delayq.Delivery) error {
		n++
		return fmt.Errorf("failure %d", n)
	}, append(opts, every(time.Second))...)
	return n
}

func TestAttemptsOfAMessage(t *testing.T) {
	bubble(t, func(t *testing.T) {
		for _, opts := range [][]delayq.ConsumeOption{nil, {delayq.MaxAttempts(1)}, {delayq.MaxAttempts(0)}, {delayq.MaxAttempts(10), delayq.Workers(5)}} {
			q := newQueue(t)
			push(t, q, delayq.Attempts(3))
			if got := attemptsOf(t, q, opts...); got != 3 {
				t.Errorf("%d attempts, want 3", got)
			}
			all := deadLetters(t, q)
			if len(all) != 1 || all[0].Attempts != 3 || all[0].Reason != "failure 3" {
				t.Errorf("dead letters %+v, want one after 3 attempts, with the last failure", all)
			}
			_, err := q.Dead().RedriveAll(t.Context())
			must(t, err)
			if got := attemptsOf(t, q, opts...); got != 3 {
				t.Errorf("%d attempts after the redrive, want 3", got)
			}
		}
	})
}

// A message whose worker dies each time has its own number of attempts too.
func TestAttemptsOfAnAbandonedMessage(t *testing.T) {
	bubble(t, func(t *testing.T) {
		q := newQueue(t, delayq.WithLease(time.Minute))
		push(t, q, delayq.Attempts(2))
		for range 2 {
			receive(t, q)
			time.Sleep(time.Minute)
		}
		if got := attemptsOf(t, q); got != 0 {
			t.Errorf("the handler ran %d times", got)
		}
		if all := deadLetters(t, q); len(all) != 1 || !strings.HasPrefix(all[0].Reason, "2 attempts ended") {
			t.Errorf("dead letters %+v", all)
		}
	})
}

func TestHandlerTimeoutOfAMessage(t *testing.T) {
	bubble(t, func(t *testing.T) {
		for _, opts := range [][]delayq.ConsumeOption{nil, {delayq.Timeout(time.Second)}, {delayq.Timeout(time.Hour)}} {
			q := newQueue(t)
			push(t, q, delayq.HandlerTimeout(time.Minute))
			var took time.Duration
			consume(t, q, 2*time.Hour, func(ctx context.Context, d *delayq.Delivery) error {
				began := time.Now()
				err := obeying(ctx, d)
				took = time.Since(began)
				if context.Cause(ctx) != delayq.ErrTimeout {
					t.Errorf("the cause is %v", context.Cause(ctx))
				}
				return err
			}, append(opts, delayq.MaxAttempts(1))...)
			if took != time.Minute {
				t.Errorf("the handler had %v, want a minute", took)
			}
			if all := deadLetters(t, q); len(all) != 1 || !strings.Contains(all[0].Reason, "(1m0s)") {
				t.Errorf("dead letters %+v", all)
			}
		}
	})
}

// Limits are shown wherever a message is, and are no headers there.
func TestLimitsAreShown(t *testing.T) {
	bubble(t, func(t *testing.T) {
		q, ctx := newQueue(t), t.Context()
		want := delayq.Limits{
			Attempts: 7, HandlerTimeout: 90*time.Second + 1, ExpiresAfter: time.Hour, Expires: time.Now().Add(time.Hour + 1).UTC(), DeadLetterExpired: true,
		}
		for _, headers := range []map[string]string{nil, {"a": "b"}} {
			_, err := q.PushBatch(ctx, []delayq.Message{{Headers: headers, Limits: &want}})
			must(t, err)
			page, _, err := q.Peek(ctx, "", 10)
			must(t, err)
			if len(page) != 1 || page[0].Limits == nil || *page[0].Limits != want || !maps.Equal(page[0].Headers, headers) {
				t.Errorf("Peek shows %+v", page)
			}
			d := receive(t, q)
			if d.Limits() != want || !reflect.DeepEqual(d.Headers, headers) {
				t.Errorf("received %+v with the headers %q", d.Limits(), d.Headers)
			}
			must(t, d.DeadLetter(ctx, "a reason"))
			all := deadLetters(t, q)
			if len(all) != 1 || all[0].Limits == nil || *all[0].Limits != want || !maps.Equal(all[0].Headers, headers) {
				t.Errorf("dead letters %+v", all)
			}
			must(t, q.Dead().Delete(ctx, d.ID))
		}
		push(t, q, delayq.Header("a", "b"))
		if got := receive(t, q).Limits(); got != (delayq.Limits{}) {
			t.Errorf("a message without limits has %+v", got)
		}
	})
}

// The caller's message, headers and limits stay as they are, and may be shared.
func TestLimitsStayTheCallers(t *testing.T) {
	t.Parallel()
	q, ctx := newQueue(t), t.Context()
	m := delayq.Message{Headers: map[string]string{"a": "b"}, Limits: &delayq.Limits{Attempts: 3}}
	ms := []delayq.Message{m, m}
	_, err := q.PushBatch(ctx, ms)
	must(t, err)
	shared := func(other *delayq.Message) error { other.Limits = m.Limits; return nil }
	push(t, q, shared, delayq.Attempts(5))
	if len(m.Headers) != 1 || m.Limits.Attempts != 3 || ms[1].Limits != m.Limits {
		t.Errorf("the message is now %+v with %+v", m, m.Limits)
	}
	for _, want := range []int{3, 3, 5} {
		if got := receive(t, q).Limits().Attempts; got != want {
			t.Errorf("%d attempts, want %d", got, want)
		}
	}
}

// New headers replace the user's, and leave the limits.
func TestNackHeadersKeepsLimits(t *testing.T) {
	t.Parallel()
	q, ctx := newQueue(t), t.Context()
	push(t, q, delayq.Header("old", "1"), delayq.Attempts(3))
	for _, headers := range []map[string]string{{"new": "2"}, nil, {}, {"again": "3"}} {
		mine := maps.Clone(headers)
		must(t, receive(t, q).Nack(ctx, 0, delayq.NackHeaders(mine)))
		if !maps.Equal(mine, headers) {
			t.Errorf("the caller's headers are now %q", mine)
		}
		d := receive(t, q)
		if d.Limits().Attempts != 3 || !maps.Equal(d.Headers, headers) {
			t.Errorf("got %+v with the headers %q, want %q", d.Limits(), d.Headers, headers)
		}
		must(t, d.Nack(ctx, 0))
	}
	d := receive(t, q)
	full := map[string]string{"k": strings.Repeat("v", backend.MaxHeaders-backend.HeaderCost-1)}
	wantInvalid(t, d.Nack(ctx, 0, delayq.NackHeaders(full)), "headers", "of 65")
	must(t, d.Ack(ctx))
}

func TestLimitsNeedFeatures(t *testing.T) {
	type test struct {
		lacks backend.Feature
		opt   delayq.PushOption
		fails bool
	}
	queuetest.Cases(t, map[string]test{
		"headers":           {delayq.KeepingHeaders, delayq.ExpiresAfter(time.Hour), true},
		"counting attempts": {delayq.CountingAttempts, delayq.Attempts(3), true},
		"no attempts":       {delayq.CountingAttempts, delayq.HandlerTimeout(time.Hour), false},
	}, func(t *testing.T, tt test) {
		s := newSeam()
		s.traits = lacking(tt.lacks)
		q := newQueue(t, s.option())
		_, err := q.Push(t.Context(), nil, tt.opt)
		if tt.fails {
			wantIs(t, err, delayq.ErrUnsupported)
		} else {
			must(t, err)
		}
	})
}

// An expiry is a message with limits, and how long after the push it is handed out at the latest.
type expiry struct {
	opts []delayq.PushOption
	last time.Duration
}

func expiries() map[string]expiry {
	in := func(d time.Duration) delayq.PushOption { return delayq.Expires(time.Now().Add(d)) }
	return map[string]expiry{
		"after":          {[]delayq.PushOption{delayq.ExpiresAfter(time.Minute)}, time.Minute},
		"after, delayed": {[]delayq.PushOption{delayq.After(time.Hour), delayq.ExpiresAfter(time.Minute)}, time.Hour + time.Minute},
		"at":             {[]delayq.PushOption{delayq.After(time.Hour), in(90 * time.Minute)}, 90 * time.Minute},
		"the earlier":    {[]delayq.PushOption{in(90 * time.Minute), delayq.ExpiresAfter(time.Minute)}, time.Minute},
		"the earlier at": {[]delayq.PushOption{in(time.Second), delayq.ExpiresAfter(time.Minute)}, time.Second},
	}
}

func TestExpiry(t *testing.T) {
	t.Parallel()
	for name := range expiries() {
		for _, dead := range []bool{false, true} {
			for _, coarse := range []time.Duration{0, 10 * time.Millisecond} {
				t.Run(fmt.Sprintf("%s, dead %v, resolution %v", name, dead, coarse), func(t *testing.T) {
					bubble(t, func(t *testing.T) {
						s, e := newSeam(), expiries()[name]
						s.traits = func(tr *backend.Traits) { tr.Resolution = coarse }
						s.received = func(ds []backend.Delivery) { // a store of that resolution rounds the ends of leases up
							for i := range ds {
								ds[i].Until = ds[i].Until.Add(coarse)
							}
						}
						q, opts := newQueue(t, s.option()), e.opts
						if dead {
							opts = append(opts, delayq.DeadLetterExpired())
						}
						push(t, q, opts...)
						time.Sleep(e.last)
						must(t, receive(t, q).Release(t.Context()))
						time.Sleep(coarse + 1)
						takeNone(t, q)
						if !dead {
							wantCounts(t, q, delayq.Stats{})
							return
						}
						all := deadLetters(t, q)
						if len(all) != 1 || all[0].Reason != delayq.ErrExpired.Error() {
							t.Errorf("dead letters %+v", all)
						}
					})
				})
			}
		}
	}
}

// The good messages of a claim do not wait beyond their leases for the expired ones.
func TestExpiredDoNotDelayOthers(t *testing.T) {
	bubble(t, func(t *testing.T) {
		const lease = 300 * time.Millisecond
		s := newSeam()
		s.before = hanging("ack")
		q := newQueue(t, s.option(), delayq.WithLease(lease))
		push(t, q, delayq.ExpiresAfter(time.Second))
		time.Sleep(2 * time.Second) // virtual
		push(t, q)
		ds, err := q.ReceiveBatch(t.Context(), 2)
		must(t, err)
		if left := time.Until(ds[0].LeaseUntil()); len(ds) != 1 || left != lease*2/3 {
			t.Errorf("%d messages, whose leases last %v, want 1 and %v", len(ds), left, lease*2/3)
		}
	})
}

// A retry, a reschedule and a redrive set a new due time, from which ExpiresAfter counts.
func TestExpiresAfterCountsFromTheDueTime(t *testing.T) {
	bubble(t, func(t *testing.T) {
		q, ctx := newQueue(t), t.Context()
		id := push(t, q, delayq.ExpiresAfter(time.Minute), delayq.DeadLetterExpired())
		must(t, receive(t, q).Nack(ctx, time.Hour))
		time.Sleep(time.Hour + time.Minute)
		must(t, receive(t, q).Nack(ctx, time.Hour))
		must(t, q.Reschedule(ctx, id, time.Now().Add(3*time.Hour)))
		time.Sleep(3*time.Hour + time.Minute)
		must(t, receive(t, q).Nack(ctx, 0))
		time.Sleep(time.Minute + 1)
		takeNone(t, q)
		must(t, q.Dead().Redrive(ctx, id))
		time.Sleep(time.Minute)
		must(t, receive(t, q).Ack(ctx))
	})
}

// A redriven message whose Expires has passed expires again.
func TestRedrivenMessageExpiresAgain(t *testing.T) {
	bubble(t, func(t *testing.T) {
		q, ctx := newQueue(t), t.Context()
		id := push(t, q, delayq.Expires(time.Now()), delayq.DeadLetterExpired())
		time.Sleep(time.Second)
		for range 2 {
			takeNone(t, q)
			must(t, q.Dead().Redrive(ctx, id))
		}
	})
}

// Expired messages never reach a caller, and the others do, in order.
func TestExpiredAmongOthers(t *testing.T) {
	t.Parallel()
	const n = 300
	for name, take := range map[string]func(*testing.T, delayq.Queue) []string{
		"Receive": func(t *testing.T, q delayq.Queue) (got []string) {
			t.Helper()
			for range n {
				d := receive(t, q)
				got = append(got, string(d.Body))
				must(t, d.Ack(t.Context()))
			}
			return got
		},
		"ReceiveBatch": func(t *testing.T, q delayq.Queue) (got []string) {
			t.Helper()
			for len(got) < n {
				ds, err := q.ReceiveBatch(t.Context(), 40)
				must(t, err)
				for _, d := range ds {
					got = append(got, string(d.Body))
				}
				must(t, q.AckBatch(t.Context(), ds))
			}
			return got
		},
		"Consume": func(t *testing.T, q delayq.Queue) (got []string) {
			t.Helper()
			consume(t, q, time.Second, func(_ context.Context, d *delayq.Delivery) error {
				got = append(got, string(d.Body))
				return nil
			})
			return got
		},
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				q := newQueue(t)
				var ms []delayq.Message
				var want []string
				for i := range n {
					text := fmt.Sprint(i)
					want = append(want, text)
					for dead := range i % 3 {
						ms = append(ms, delayq.Message{Limits: &delayq.Limits{ExpiresAfter: time.Millisecond, DeadLetterExpired: dead > 0}})
					}
					ms = append(ms, delayq.Message{Body: []byte(text), Limits: &delayq.Limits{ExpiresAfter: time.Hour}})
				}
				_, err := q.PushBatch(t.Context(), ms)
				must(t, err)
				time.Sleep(time.Second)
				if got := take(t, q); !slices.Equal(got, want) {
					t.Errorf("got %q", got)
				}
				wantCounts(t, q, delayq.Stats{Dead: n / 3})
			})
		})
	}
}

// An expired message that cannot be settled is not shown, and expires after its lease.
func TestExpiryOutlivesFailures(t *testing.T) {
	type test struct {
		op   string
		dead bool
	}
	queuetest.Cases(t, map[string]test{"drop": {"ack", false}, "dead letter": {"dead", true}}, func(t *testing.T, tt test) {
		w, s := newWatcher(), newSeam()
		s.before = once(tt.op)
		q := newQueue(t, s.option(), delayq.WithLease(time.Minute), w.metrics())
		_, err := q.PushBatch(t.Context(), []delayq.Message{{Limits: &delayq.Limits{ExpiresAfter: time.Second, DeadLetterExpired: tt.dead}}})
		must(t, err)
		time.Sleep(time.Hour)
		takeNone(t, q)
		wantCounts(t, q, delayq.Stats{InFlight: 1})
		w.wantTotal(t, 0, "delayq.expired")
		w.wantTotal(t, 1, "delayq.failures", errorType("settle"))
		time.Sleep(time.Minute)
		takeNone(t, q)
		w.wantTotal(t, 1, "delayq.expired")
		w.wantTotal(t, 0, "messaging.client.consumed.messages")
		want := delayq.Stats{}
		if tt.dead {
			want.Dead = 1
			w.wantTotal(t, 1, "delayq.dead_letters")
		}
		wantCounts(t, q, want)
	})
}

// A Receive ends with its context, also while the store does not reply to the deletion of an expired
// message.
func TestExpiryEndsWithTheContext(t *testing.T) {
	bubble(t, func(t *testing.T) {
		s := newSeam()
		s.before = hanging("ack")
		q := newQueue(t, s.option())
		push(t, q, delayq.ExpiresAfter(time.Second))
		time.Sleep(time.Minute)
		ctx, stop := context.WithTimeout(t.Context(), time.Second)
		defer stop()
		began := time.Now()
		_, err := q.Receive(ctx)
		wantIs(t, err, context.DeadlineExceeded)
		if took := time.Since(began); took != time.Second {
			t.Errorf("Receive took %v", took)
		}
	})
}

// Expired messages that a Consume makes dead letters are counted too.
func TestConsumeCountsExpiredMessages(t *testing.T) {
	bubble(t, func(t *testing.T) {
		w := newWatcher()
		q := newQueue(t, w.metrics())
		pushMany(t, q, 2, delayq.ExpiresAfter(time.Second), delayq.DeadLetterExpired())
		push(t, q, delayq.ExpiresAfter(time.Second))
		time.Sleep(time.Minute)
		consume(t, q, time.Hour, unwanted)
		w.wantTotal(t, 3, "delayq.expired")
		wantCounts(t, q, delayq.Stats{Dead: 2})
	})
}

// Messages that were claimed with an expired one are handed out within a third of the lease, also
// while the store does not reply to the deletion.
func TestExpiryDoesNotHoldUpOthers(t *testing.T) {
	bubble(t, func(t *testing.T) {
		s := newSeam()
		s.before = hanging("ack")
		q := newQueue(t, s.option(), delayq.WithLease(time.Minute))
		push(t, q, delayq.ExpiresAfter(time.Second))
		sound := push(t, q)
		time.Sleep(time.Hour)
		began := time.Now()
		ds, err := q.ReceiveBatch(t.Context(), 2)
		must(t, err)
		if took := time.Since(began); len(ds) != 1 || ds[0].ID != sound || took != 20*time.Second {
			t.Errorf("%d messages were handed out after %v", len(ds), took)
		}
	})
}

// Limits that cannot be read limit nothing, and do not stop the message. Fields of a newer release
// stay with it.
func TestUnreadableLimits(t *testing.T) {
	queuetest.Cases(t, map[string]string{
		"empty": "", "unknown": "color=red", "not numbers": "attempts=x timeout=y expires-after=z expires=17",
		"out of range": "attempts=0 timeout=25h expires-after=-1s expires=1969-01-01T00:00:00Z", "no values": "attempts timeout expires",
	}, func(t *testing.T, text string) {
		s := newSeam()
		q := newQueue(t, s.option())
		raw, err := s.Backend.Open(t.Context(), "orders", backend.Options{Logger: silent})
		must(t, err)
		must(t, errors.Join(raw.Schedule(t.Context(), []backend.Message{{ID: "a", Headers: map[string]string{"delayq-limits": text + " attempts=3"}}})...))
		d := receive(t, q)
		if d.Limits() != (delayq.Limits{Attempts: 3}) || d.Headers != nil {
			t.Errorf("got %+v with %q", d.Limits(), d.Headers)
		}
		must(t, d.Nack(t.Context(), 0, delayq.NackHeaders(nil)))
		stored, err := raw.Receive(t.Context(), 1, time.Minute)
		must(t, err)
		if got := stored[0].Headers["delayq-limits"]; got != text+" attempts=3" {
			t.Errorf("stored are %q", got)
		}
	})
}
