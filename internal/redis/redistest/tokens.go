package redistest

import (
	"context"
	"slices"
	"testing"
	"time"

	"github.com/delayq/delayq/backend"
	"github.com/delayq/delayq/internal/testenv"
)

// Stale checks that a lease that is over settles nothing.
func Stale(ctx context.Context, t testing.TB, s Store, l backend.Lease) {
	t.Helper()
	ls := []backend.Lease{l}
	Wants(t, s.Ack(ctx, ls), backend.ErrLeaseLost)
	Wants(t, s.Nack(ctx, Returns(ls, backend.Return{})), backend.ErrLeaseLost)
	Wants(t, s.Nack(ctx, Returns(ls, backend.Return{Untouched: true})), backend.ErrLeaseLost)
	Wants(t, s.Dead(ctx, DeadLetters(ls, "")), backend.ErrLeaseLost)
	_, errs := s.Extend(ctx, ls, time.Minute)
	Wants(t, errs, backend.ErrLeaseLost)
}

// ends are the ways in which a lease that was taken is over.
var ends = map[string]struct {
	end     func(tr *Trial, lease func())
	attempt int // of the next delivery, 0 for one more than before
}{
	"acked": {func(tr *Trial, lease func()) { lease(); Must(tr.T, AckAll(tr, tr.Store)) }, 1},
	"cancelled": {func(tr *Trial, lease func()) {
		lease()
		Must(tr.T, ReleaseAll(tr, tr.Store), CancelAll(tr, tr.Store))
	}, 1},
	"deleted dead": {func(tr *Trial, lease func()) {
		lease()
		Must(tr.T, DeadAll(tr, tr.Store), DeleteDeadAll(tr, tr.Store))
	}, 1},
	"dead and redriven": {func(tr *Trial, lease func()) {
		lease()
		Must(tr.T, DeadAll(tr, tr.Store), RedriveAll(tr, tr.Store))
	}, 1},
	"ended": {func(tr *Trial, lease func()) { lease(); tr.Clock.Advance(2 * time.Minute) }, 0},
	"forgotten": {func(tr *Trial, lease func()) {
		setBack := tr.remember()
		lease()
		setBack()
		tr.Clock.Advance(time.Second)
	}, 1},
}

// StaleTokens ends leases in each way, again and again within a millisecond. No lease that is over
// settles anything, neither at once nor when its message is leased again.
func (s *Suite) StaleTokens(t *testing.T) {
	for variant, begin := range s.Variants {
		for name, e := range ends {
			for how := range begin(t, testenv.SharedRedis(t)).Claims {
				t.Run(variant+"/"+name+"/"+how, func(t *testing.T) {
					t.Parallel()
					tr := begin(t, testenv.SharedRedis(t))
					var before []backend.Lease
					attempt, due := 0, tr.Messages()[0].Due
					lease := func() {
						var ds []backend.Delivery
						for len(ds) < len(bodies) {
							ds = append(ds, tr.Claim(tr.Claims[how])...)
						}
						if attempt = max(attempt+1, 1); e.attempt > 0 {
							attempt = e.attempt
						}
						for _, d := range ds {
							if d.Attempt != attempt {
								t.Errorf("%s comes at attempt %d, want %d", d.Body, d.Attempt, attempt)
							}
						}
						if e.attempt == 0 && !ds[0].Due.Equal(due) {
							t.Errorf("%s was due at %v, and is due at %v again", ds[0].Body, due, ds[0].Due)
						}
						tr.Leases = Leases(ds)
						for _, l := range before {
							if slices.ContainsFunc(tr.Leases, func(now backend.Lease) bool { return now.Token == l.Token }) {
								t.Errorf("the token %v is used again", l.Token)
							}
							Stale(tr.Ctx, t, tr.Store, l)
						}
					}
					for range 10 {
						if len(tr.Keys()) == 0 {
							Pushed(tr)
						}
						e.end(tr, lease)
						before = append(before[max(0, len(before)-3):], tr.Leases...)
						for _, l := range tr.Leases {
							Stale(tr.Ctx, t, tr.Store, l)
						}
					}
					if len(tr.Keys()) > 0 {
						lease()
						Must(t, AckAll(tr, tr.Store))
					}
					if keys := tr.Keys(); len(keys) > 0 {
						t.Errorf("left over: %q", keys)
					}
				})
			}
		}
	}
}

// remember saves the queue's keys and returns a function that restores them. A server rolls back
// like that when it lost writes that were not on its disk, or when a replica took over.
func (tr *Trial) remember() (setBack func()) {
	tr.T.Helper()
	kept := make(map[string]string)
	for _, key := range tr.Keys() {
		value, err := tr.Raw.Dump(tr.Ctx, key).Result()
		Must(tr.T, err)
		kept[key] = value
	}
	return func() {
		tr.T.Helper()
		Must(tr.T, tr.Raw.Del(tr.Ctx, tr.Keys()...).Err())
		for key, value := range kept {
			Must(tr.T, tr.Raw.Restore(tr.Ctx, key, 0, value).Err())
		}
	}
}
