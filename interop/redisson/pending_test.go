package interop

import (
	"context"
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/delayq/delayq/backend"
	"github.com/delayq/delayq/redisson"
)

// leaseTime outlasts a test.
const leaseTime = 5 * time.Minute

// TestJavaSeesWhatGoPushed calls the methods of Java's delayed queue on Go's messages. Messages
// that Java removes never reach Go.
func TestJavaSeesWhatGoPushed(t *testing.T) {
	eachVersion(t, func(ctx context.Context, f fixture) {
		b := f.both(Default)
		q := b.open(ctx)
		ids := b.push(ctx, hence(time.Hour, "a", "b", "c", "d", "e", "f", "g")...)
		f.is(b.java.Size(ctx))(7)
		f.is(b.java.ReadAll(ctx))([]any{"a", "b", "c", "d", "e", "f", "g"})
		f.is(b.java.Peek(ctx))("a")
		f.is(b.java.Contains(ctx, "d"))(true)
		f.is(b.java.Contains(ctx, "z"))(false)
		f.is(b.java.Remove(ctx, "d"))(true)
		f.is(b.java.Remove(ctx, "d"))(false)
		f.is(b.java.Poll(ctx))("a")
		f.is(b.java.PollMany(ctx, 2))([]any{"b", "c"})
		f.is(b.java.ReadAll(ctx))([]any{"e", "f", "g"})
		for _, gone := range ids[:4] {
			f.isErr(q.Reschedule(ctx, []backend.Move{{ID: gone}}), backend.ErrNotFound)
			f.isErr(q.Cancel(ctx, []string{gone}), backend.ErrNotFound)
		}
		must(f.T, errors.Join(q.Reschedule(ctx, []backend.Move{{ID: ids[4]}, {ID: ids[5]}, {ID: ids[6]}})...))
		bodies := take(ctx, f.T, q, 3)
		if slices.Sort(bodies); !slices.Equal(bodies, []string{"e", "f", "g"}) {
			f.Errorf("Go received %q", bodies)
		}
		b.empty(ctx)
	})
}

func hence(delay time.Duration, texts ...string) (ms []backend.Message) {
	for _, s := range texts {
		ms = append(ms, backend.Message{Body: []byte(s), Delay: delay})
	}
	return ms
}

func (f fixture) isErr(errs []error, want error) {
	f.Helper()
	for _, err := range errs {
		if !errors.Is(err, want) {
			f.Errorf("got %v; want %v", err, want)
		}
	}
	if len(errs) == 0 {
		f.Errorf("all went well; want %v", want)
	}
}

// TestGoActsOnWhatJavaOffered cancels and moves Java's messages, named by their members or as
// Pending names them.
func TestGoActsOnWhatJavaOffered(t *testing.T) {
	eachVersion(t, func(ctx context.Context, f fixture) {
		for how, idsOf := range map[string]func(both, context.Context) map[string]string{"members": both.byMember, "listing": both.byListing} {
			b := f.both(Default)
			for _, s := range []string{"stays", "gone", "soon", "for Java"} {
				must(f.T, b.java.Offer(ctx, s, time.Hour))
			}
			ids := idsOf(b, ctx)
			q := b.open(ctx)
			must(f.T, errors.Join(q.Cancel(ctx, []string{ids["gone"]})...))
			f.isErr(q.Cancel(ctx, []string{ids["gone"]}), backend.ErrNotFound)
			f.is(b.java.Size(ctx))(3)
			f.is(b.java.ReadAll(ctx))([]any{"stays", "soon", "for Java"})
			f.is(b.java.Contains(ctx, "gone"))(false)
			must(f.T, errors.Join(q.Reschedule(ctx, []backend.Move{{ID: ids["soon"], Delay: 20 * time.Millisecond}})...))
			if bodies := take(ctx, f.T, q, 1); bodies[0] != "soon" {
				f.Errorf("by %s: Go received %q", how, bodies)
			}
			must(f.T, errors.Join(q.Reschedule(ctx, []backend.Move{{ID: ids["for Java"], Delay: 20 * time.Millisecond}})...))
			f.is(b.java.Take(ctx, 20*time.Second))("for Java")
			f.is(b.java.ReadAll(ctx))([]any{"stays"})
			f.is(b.java.Remove(ctx, "stays"))(true)
			b.empty(ctx)
		}
	})
}

// byMember reads Java's sorted set, as an operator would.
func (b both) byMember(ctx context.Context) map[string]string {
	b.Helper()
	ids := map[string]string{}
	for _, z := range got(b.redis.ZRangeWithScores(ctx, keysOf(b.java.Name()).due, 0, -1).Result())(b.T) {
		member := []byte(z.Member.(string))
		m := got(redisson.ParseMember(member))(b.T)
		body := got(codecOf(Default, b.jvm.Version()).Decode(m.Payload))(b.T)
		ids[string(body)] = got(redisson.MemberID(member, time.UnixMilli(int64(z.Score))))(b.T)
	}
	return ids
}

func (b both) byListing(ctx context.Context) map[string]string {
	b.Helper()
	ids := map[string]string{}
	for _, p := range b.pending(ctx) {
		ids[string(p.Body)] = p.ID
	}
	return ids
}

// pending lists the scheduled messages.
func (b both) pending(ctx context.Context) (all []redisson.Pending) {
	b.Helper()
	for cursor := ""; ; {
		page, next, err := b.ours.Pending(ctx, b.java.Name(), cursor, 1000)
		must(b.T, err)
		if all = append(all, page...); next == "" {
			return all
		}
		cursor = next
	}
}

// TestJavaDoesNotSeeLeasedMessages looks from Java at leased messages of Go's and Java's, and at
// messages that a Go worker gives back.
func TestJavaDoesNotSeeLeasedMessages(t *testing.T) {
	eachVersion(t, func(ctx context.Context, f fixture) {
		b := f.both(Default)
		q := b.open(ctx)
		must(f.T, b.java.Offer(ctx, "Java's", time.Millisecond))
		must(f.T, errors.Join(q.Schedule(ctx, hence(0, "Go's"))...))
		held := lease(ctx, f.T, q, 2)
		f.seesNothing(ctx, b.java)
		var returns []backend.Return
		for _, d := range held {
			returns = append(returns, backend.Return{Lease: d.Lease(), Delay: time.Hour})
		}
		must(f.T, errors.Join(q.Nack(ctx, returns)...))
		seen := texts(got(b.java.ReadAll(ctx))(f.T))
		if slices.Sort(seen); !slices.Equal(seen, []string{"Go's", "Java's"}) {
			f.Errorf("Java sees %q", seen)
		}
		f.is(b.java.Size(ctx))(2)
		f.is(b.java.Contains(ctx, "Java's"))(true)
		f.is(b.java.Remove(ctx, "Java's"))(true)
		f.is(b.java.Poll(ctx))("Go's")
		f.isErr(q.Ack(ctx, []backend.Lease{held[0].Lease(), held[1].Lease()}), backend.ErrLeaseLost)
		b.empty(ctx)
	})
}

func (f fixture) seesNothing(ctx context.Context, q *Queue) {
	f.Helper()
	f.is(q.Size(ctx))(0)
	f.is(q.ReadAll(ctx))([]any{})
	f.is(q.Peek(ctx))(nil)
	f.is(q.Poll(ctx))(nil)
	f.is(q.PollMany(ctx, 5))([]any{})
	f.is(q.ReadySize(ctx))(0)
	f.is(q.PollReady(ctx))(nil)
	for _, s := range []string{"Go's", "Java's"} {
		f.is(q.Contains(ctx, s))(false)
		f.is(q.Remove(ctx, s))(false)
	}
}

func texts(values []any) (all []string) {
	for _, v := range values {
		all = append(all, v.(string))
	}
	return all
}
