package store_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/delayq/delayq/backend"
	"github.com/delayq/delayq/internal/redis/redistest"
	"github.com/delayq/delayq/internal/testenv"
)

// pushDue pushes messages that are due so many seconds ago, and returns their ids in the order of the queue.
func pushDue(tr *trial, ago ...int) (ids []string) {
	ms := make([]backend.Message, len(ago))
	for i := range ms {
		ms[i] = backend.Message{ID: fmt.Sprintf("%03d", i), Due: tr.Clock.Now().Add(-time.Duration(ago[i]) * time.Second)}
	}
	must(tr.T, tr.Store.Schedule(tr.Ctx, ms)...)
	slices.SortStableFunc(ms, func(a, b backend.Message) int { return a.Due.Compare(b.Due) })
	for i := range ms {
		ids = append(ids, ms[i].ID)
	}
	return ids
}

// TestClaimsOfMany claims messages of which some, all or none are due at once: all come in order, with
// their due times.
func TestClaimsOfMany(t *testing.T) {
	t.Parallel()
	for name, ago := range map[string]func(i int) int{
		"at once":         func(int) int { return 5 },
		"one by one":      func(i int) int { return 100 - i },
		"backwards":       func(i int) int { return 1 + i },
		"first at once":   func(i int) int { return 100 - max(i, 30) },
		"later at once":   func(i int) int { return 100 - min(i, 10) },
		"in pairs":        func(i int) int { return 100 - i/2 },
		"some not yet":    func(i int) int { return 20 - i },
		"many not at all": func(i int) int { return 15 - i },
	} {
		for _, limit := range []int{1, 15, 16, 17, 40, 100} {
			t.Run(fmt.Sprint(name, "/", limit), func(t *testing.T) {
				t.Parallel()
				tr := newTrial(t, testenv.SharedRedis(t))
				times := make([]int, 80)
				for i := range times {
					times[i] = ago(i)
				}
				want := pushDue(tr, times...)
				due := slices.DeleteFunc(slices.Clone(times), func(ago int) bool { return ago < 0 })
				var got []string
				for len(got) < len(due) {
					c, err := tr.Store.Claim(tr.Ctx, limit, time.Minute, redistest.Name())
					must(t, err)
					if n := min(limit, len(due)-len(got)); len(c.Deliveries) != n {
						t.Fatalf("a claim of %d returns %d messages, want %d", limit, len(c.Deliveries), n)
					}
					for _, d := range c.Deliveries {
						got = append(got, d.ID)
						var i int
						_, err := fmt.Sscanf(d.ID, "%d", &i)
						must(t, err)
						if want := tr.Clock.Now().Add(-time.Duration(times[i]) * time.Second); !d.Due.Equal(want) {
							t.Errorf("message %s is due at %v, want %v", d.ID, d.Due, want)
						}
					}
				}
				if !slices.Equal(got, want[:len(due)]) {
					t.Errorf("the claims return %v, want %v", got, want[:len(due)])
				}
			})
		}
	}
}

// TestManyLeases claims many messages. Redis must not keep their leases as lists, and nothing but them is there.
func TestManyLeases(t *testing.T) {
	t.Parallel()
	tr := newTrial(t, testenv.SharedRedis(t))
	const n, limit = 200, 100
	pushDue(tr, make([]int, n)...)
	var leases []backend.Lease
	for range n / limit {
		c, err := tr.Store.Claim(tr.Ctx, limit, time.Minute, redistest.Name())
		must(t, err)
		leases = append(leases, redistest.Leases(c.Deliveries)...)
		for key, encoding := range map[string]string{"leases": "skiplist", "held": "hashtable"} {
			if got := tr.Raw.ObjectEncoding(tr.Ctx, tr.Key(key)).Val(); got != encoding {
				t.Errorf("%s is a %s, want a %s", key, got, encoding)
			}
		}
	}
	if a, b := tr.Raw.ZCard(tr.Ctx, tr.Key("leases")).Val(), tr.Raw.HLen(tr.Ctx, tr.Key("held")).Val(); a != n || b != n {
		t.Errorf("there are %d and %d entries of %d leases", a, b, n)
	}
	must(t, tr.Store.Ack(tr.Ctx, leases)...)
	if keys := tr.Keys(); len(keys) > 0 {
		t.Errorf("keys are left: %v", keys)
	}
}

// TestStoppedClaimOfMany has a claim of many messages fail at each of its writes. Every message comes, once.
func TestStoppedClaimOfMany(t *testing.T) {
	t.Parallel()
	for n, met := 1, true; met; n++ {
		t.Run(fmt.Sprint("write ", n), func(t *testing.T) {
			tr := newTrial(t, testenv.SharedRedis(t))
			want := pushDue(tr, make([]int, 100)...)
			client, mark := redistest.Another(t, tr.Raw), "stopped "+redistest.Name()
			client.AddHook(redistest.Stop(redistest.ClaimMarker, n, mark))
			c, err := tr.On(client).Claim(tr.Ctx, 80, time.Minute, redistest.Name())
			met = tr.Raw.Del(tr.Ctx, mark).Val() > 0
			if !met {
				must(t, err)
				return
			}
			if err == nil || !strings.Contains(err.Error(), redistest.Stopped) {
				t.Fatalf("the claim returns %d messages and %v", len(c.Deliveries), err)
			}
			tr.Clock.Advance(2 * time.Minute)
			var got []string
			for left := 10; len(got) < len(want) && left > 0; left-- {
				c, err := tr.Store.Claim(tr.Ctx, len(want), time.Minute, redistest.Name())
				must(t, err)
				for _, d := range c.Deliveries {
					got = append(got, d.ID)
				}
				must(t, errors.Join(tr.Store.Ack(tr.Ctx, redistest.Leases(c.Deliveries))...))
			}
			if slices.Sort(got); !slices.Equal(got, want) {
				t.Errorf("these messages come: %v", got)
			}
			if keys := tr.Keys(); len(keys) > 0 {
				t.Errorf("keys are left: %v", keys)
			}
		})
	}
}

// TestAckTwiceInOne acks leases that are there twice: each has its lease once.
func TestAckTwiceInOne(t *testing.T) {
	t.Parallel()
	tr := newTrial(t, testenv.SharedRedis(t))
	redistest.Leased(tr)
	a, b, c := tr.Leases[0], tr.Leases[1], tr.Leases[2]
	lost := func(errs []error) (lost []bool) {
		for _, err := range errs {
			if err != nil && !errors.Is(err, backend.ErrLeaseLost) {
				t.Error(err)
			}
			lost = append(lost, err != nil)
		}
		return lost
	}
	if got := lost(tr.Store.Ack(tr.Ctx, []backend.Lease{a, b, a, b, a})); !slices.Equal(got, []bool{false, false, true, true, true}) {
		t.Errorf("lost: %v", got)
	}
	if got := lost(tr.Store.Ack(tr.Ctx, []backend.Lease{a, c})); !slices.Equal(got, []bool{true, false}) {
		t.Errorf("with one that is acked, lost: %v", got)
	}
	if keys := tr.Keys(); len(keys) > 0 {
		t.Errorf("keys are left: %v", keys)
	}
}

// TestClaimOfManyWithoutARight has a user without one of the rights claim many messages. A claim that fails
// changes nothing.
func TestClaimOfManyWithoutARight(t *testing.T) {
	t.Parallel()
	server := testenv.Redis(t, testenv.Private())
	for _, lacking := range suite.Rights {
		t.Run(lacking, func(t *testing.T) {
			t.Parallel()
			tr := newTrial(t, server)
			client := redistest.User(t, server, "many-without-"+lacking, redistest.Without(suite.Rights, lacking), suite.Access...)
			const n = 100
			pushDue(tr, make([]int, n)...)
			_, err := tr.On(client).Claim(tr.Ctx, n, time.Minute, redistest.Name())
			if err == nil {
				return
			}
			if !redistest.Names(err, lacking) {
				t.Error(err)
			}
			due, leases, held := tr.Raw.ZCard(tr.Ctx, tr.Key("due")).Val(), tr.Raw.ZCard(tr.Ctx, tr.Key("leases")).Val(), tr.Raw.HLen(tr.Ctx, tr.Key("held")).Val()
			if due != n || leases != 0 || held != 0 {
				t.Errorf("a claim that failed leaves %d messages due, and %d and %d entries of leases", due, leases, held)
			}
		})
	}
}
