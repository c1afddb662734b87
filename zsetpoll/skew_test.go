package zsetpoll_test

import (
	"context"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/delayq/delayq/backend"
	"github.com/delayq/delayq/internal/redis/redistest"
	"github.com/delayq/delayq/internal/testenv"
	"github.com/delayq/delayq/zsetpoll"
)

func serverTime(ctx context.Context, t *testing.T, client *redis.Client) time.Time {
	t.Helper()
	now, err := client.Time(ctx).Result()
	must(t, err)
	return now
}

// TestClockIsWrong has clients whose clock is an hour behind and ahead of the server's. Nothing is
// early or late by the server's.
func TestClockIsWrong(t *testing.T) {
	for _, skew := range []time.Duration{time.Hour, -time.Hour} {
		t.Run(fmt.Sprint(skew), func(t *testing.T) {
			server := testenv.Redis(t, testenv.OnClock(testenv.NewClock(t, skew)))
			t.Run("modes", func(t *testing.T) {
				eachMode(t, func(t *testing.T, mode zsetpoll.Mode) {
					ctx := redistest.Deadline(t)
					client := server.Client(t)
					if off := time.Until(serverTime(ctx, t, client)); (off - skew).Abs() > time.Minute {
						t.Fatalf("the server's clock is off by %v, want %v", off, skew)
					}
					q := open(t, client, zsetpoll.Claims(mode))
					punctual(ctx, t, q, client)
					comesBack(ctx, t, q, client)
					drained(ctx, t, q, client)
				})
			})
		})
	}
}

const (
	waves  = 100
	tardy  = 2 * patience // far below the hour, far above the noise of a busy machine
	afewms = 7 * time.Millisecond
)

// punctual pushes messages with delays and due times, and checks when they come by the server's
// clock.
func punctual(ctx context.Context, t *testing.T, q backend.Queue, client *redis.Client) {
	t.Helper()
	earliest := make(map[string]time.Time)
	began := serverTime(ctx, t, client)
	for i := range waves {
		// a message without a delay is due in the current millisecond
		delay := time.Duration(i+1) * afewms
		after, at := message(fmt.Sprint("after ", i), delay), message(fmt.Sprint("at ", i), 0)
		at[0].Due = began.Add(delay)
		earliest[after[0].ID], earliest[at[0].ID] = serverTime(ctx, t, client).Add(delay), at[0].Due
		must(t, q.Schedule(ctx, append(after, at...))...)
	}
	for len(earliest) > 0 {
		ds, err := q.Receive(ctx, 10, time.Minute)
		must(t, err)
		for _, d := range ds {
			onTime(t, d, earliest[d.ID], time.Minute)
			delete(earliest, d.ID)
		}
		must(t, q.Ack(ctx, leases(ds))...)
	}
}

// onTime checks the server's time of the claim: it is the end of the lease less the lease, rounded
// up.
func onTime(t *testing.T, d backend.Delivery, earliest time.Time, lease time.Duration) {
	t.Helper()
	claimed := d.Until.Add(-lease)
	if d.Due.Before(earliest) || claimed.Before(d.Due) || claimed.After(earliest.Add(tardy)) {
		t.Errorf("%s, to come at %v, was due at %v and came at %v", d.ID, earliest, d.Due, claimed)
	}
}

// comesBack lets leases end, extends one, gives one back with a delay, and moves a message.
func comesBack(ctx context.Context, t *testing.T, q backend.Queue, client *redis.Client) {
	t.Helper()
	const lease, delay = 100 * time.Millisecond, 150 * time.Millisecond
	must(t, q.Schedule(ctx, message("a", 0))...)
	d := receiveOne(ctx, t, q, time.Minute, "a")
	before := serverTime(ctx, t, client)
	ends, errs := q.Extend(ctx, []backend.Lease{d.Lease()}, lease)
	must(t, errs...)
	if ends[0].Before(before.Add(lease)) || ends[0].After(before.Add(lease+tardy)) {
		t.Errorf("a lease extended by %v at %v ends at %v", lease, before, ends[0])
	}
	second := receiveOne(ctx, t, q, time.Minute, "a")
	if claimed := second.Until.Add(-time.Minute); claimed.Before(ends[0]) || claimed.After(ends[0].Add(tardy)) {
		t.Errorf("the lease ended at %v, and the message came back at %v", ends[0], claimed)
	}
	before = serverTime(ctx, t, client)
	must(t, q.Nack(ctx, []backend.Return{{Lease: second.Lease(), Delay: delay}})...)
	third := receiveOne(ctx, t, q, time.Minute, "a")
	onTime(t, third, before.Add(delay), time.Minute)
	must(t, q.Ack(ctx, []backend.Lease{third.Lease()})...)
	must(t, q.Schedule(ctx, message("b", time.Hour))...)
	before = serverTime(ctx, t, client)
	must(t, q.Reschedule(ctx, []backend.Move{{ID: "b", Delay: delay}})...)
	moved := receiveOne(ctx, t, q, time.Minute, "b")
	onTime(t, moved, before.Add(delay), time.Minute)
	must(t, q.Ack(ctx, []backend.Lease{moved.Lease()})...)
}

// TestNoClientTime reads all commands of the clients: no argument is a time of theirs. Arbitrate
// sends ends of leases, which it counts from the server's clock; TestClockIsWrong distinguishes the
// clocks.
func TestNoClientTime(t *testing.T) {
	for name, mode := range modes {
		if mode == zsetpoll.Arbitrate {
			continue
		}
		t.Run(name, func(t *testing.T) {
			ctx := redistest.Deadline(t)
			server := testenv.Redis(t, testenv.Private())
			client := server.Client(t)
			sent := redistest.Monitor(t, client)
			q := open(t, client, zsetpoll.Claims(mode))
			must(t, q.Schedule(ctx, message("first", 10*time.Millisecond))...)
			must(t, q.Ack(ctx, leases([]backend.Delivery{receiveOne(ctx, t, q, time.Minute, "first")}))...)
			comesBack(ctx, t, q, client)
			lines := slices.DeleteFunc(sent(), redistest.InScript)
			if len(lines) < 10 {
				t.Errorf("only %d commands were seen:\n%s", len(lines), strings.Join(lines, "\n"))
			}
			for _, line := range lines {
				noTime(t, line)
			}
		})
	}
}

var number = regexp.MustCompile(`"(\d{9,19})"`)

func noTime(t *testing.T, line string) {
	t.Helper()
	_, sent, _ := strings.Cut(line, "]")
	for _, n := range number.FindAllStringSubmatch(sent, -1) {
		v, err := strconv.ParseInt(n[1], 10, 64)
		must(t, err)
		for _, at := range []time.Time{time.Unix(min(v, 1<<40), 0), time.UnixMilli(v), time.UnixMicro(v), time.Unix(0, v)} {
			if time.Since(at).Abs() < 24*time.Hour {
				t.Errorf("a client sent the time %v: %s", at, line)
			}
		}
	}
}
