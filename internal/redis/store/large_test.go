package store_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/delayq/delayq/backend"
	"github.com/delayq/delayq/internal/record"
	"github.com/delayq/delayq/internal/redis/redistest"
)

// large pushes messages of which a claim takes two at most.
func (b *bench) large(n int) (ids []string) {
	b.t.Helper()
	for i := range n {
		ids = append(ids, fmt.Sprint("large ", i))
		b.all(b.Schedule(b.ctx, []backend.Message{{ID: ids[i], Body: make([]byte, 6<<20), Due: time.Unix(1, 0)}}))
	}
	return ids
}

// TestRepliesOfLargeMessagesAreBounded has no reply carry more than a few of them, in any mode and
// in a listing of dead letters; and ids are listed without them.
func TestRepliesOfLargeMessagesAreBounded(t *testing.T) {
	t.Parallel()
	eachWay(t, func(t *testing.T, b *bench, _ string, way claimer) {
		ids := b.large(7)
		for left := len(ids); left > 0; {
			c := b.claim(way, time.Minute)
			if n := len(c.Deliveries); n == 0 || n > 2 {
				t.Fatalf("a claim has %d messages of 6 MiB", n)
			}
			for _, d := range c.Deliveries {
				b.deadLetter(d)
				left--
			}
		}
		var listed []string
		for _, page := range redistest.Pages(b.ctx, t, b.ListDead, 100) {
			if len(page) == 0 || len(page) > 2 {
				t.Fatalf("a page has %d dead letters of 6 MiB", len(page))
			}
			for _, l := range page {
				listed = append(listed, l.ID)
			}
		}
		alone, next, err := b.ListDeadIDs(b.ctx, "", 100)
		if fmt.Sprint(alone) != fmt.Sprint(ids) || fmt.Sprint(listed) != fmt.Sprint(ids) || next != "" || err != nil {
			t.Errorf("listed %q and %q, %q, %v", listed, alone, next, err)
		}
		b.all(b.Redrive(b.ctx, alone))
		if d := b.claim(b.Claim, time.Minute).Deliveries; len(d) == 0 || d[0].ID != ids[0] || d[0].Attempt != 1 || len(d[0].Body) != 6<<20 {
			t.Errorf("got %d redriven messages", len(d))
		}
	})
}

// TestGetOfLargeMessagesIsBounded has no reply carry more than two of them, dead or not.
func TestGetOfLargeMessagesIsBounded(t *testing.T) {
	t.Parallel()
	b := setup(t)
	ids := b.large(5)
	b.deadLetter(b.claim(b.Claim, time.Minute).Deliveries[0])
	most, replies := 0, 0
	b.raw.AddHook(onReply(func(values []any) { most, replies = max(most, len(values)), replies+1 }))
	ms, errs := b.Get(b.ctx, append(ids, "unknown"))
	b.wantEach(errs, len(ids)+1, func(i int) error {
		if i == len(ids) {
			return backend.ErrNotFound
		}
		return nil
	})
	for i, id := range ids {
		if ms[i].ID != id || len(ms[i].Body) != 6<<20 {
			t.Errorf("message %d is %s of %d bytes, want %s", i, ms[i].ID, len(ms[i].Body), id)
		}
	}
	if most > 2 || replies < 3 {
		t.Errorf("%d replies have up to %d messages of 6 MiB", replies, most)
	}
}

// onReply sees the lists that commands return.
type onReply func([]any)

func (onReply) DialHook(next redis.DialHook) redis.DialHook { return next }

func (onReply) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return next
}

func (see onReply) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		err := next(ctx, cmd)
		if c, ok := cmd.(interface{ Val() any }); ok {
			if values, ok := c.Val().([]any); ok {
				see(values)
			}
		}
		return err
	}
}

// An unreadable record is shown as it is.
func TestGetShowsAnUnreadableRecord(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.push("a", "b")
	field := string(record.PackID(nil, "a"))
	seq := b.raw.HGet(b.ctx, b.key("messages"), field).Val()[:7]
	must(t, b.raw.HSet(b.ctx, b.key("messages"), field, seq+"\xff\xff\xff").Err())
	ms, errs := b.Get(b.ctx, []string{"a", "b"})
	b.all(errs)
	if ms[0].State != backend.StateReady || ms[0].Err == nil || string(ms[0].Body) != "\xff\xff\xff" || ms[1].Err != nil {
		t.Errorf("got %+v", ms)
	}
	b.raw.Del(b.ctx, b.key("messages"), b.key("due"), b.key("seq"))
}

// TestUnreadableRecordGoesAlone has an unreadable record among others. These come at once; it
// becomes a dead letter, whole.
func TestUnreadableRecordGoesAlone(t *testing.T) {
	t.Parallel()
	for how := range ways(nil) {
		for name, rec := range map[string]string{"headers": "1234567\xff\xff\xff\xff", "short": "123", "empty": ""} {
			t.Run(how+" "+name, func(t *testing.T) {
				t.Parallel()
				b := setup(t)
				b.push("a", "b", "c", "d")
				id := string(record.PackID(nil, "b"))
				must(b.t, b.raw.HSet(b.ctx, b.key("messages"), id, rec).Err())
				var got []string
				for range 3 {
					for _, d := range b.claim(ways(b.Store)[how], time.Minute).Deliveries {
						if got = append(got, d.ID); d.Attempt != 1 {
							t.Errorf("%s comes at attempt %d", d.ID, d.Attempt)
						}
						b.ack(d)
					}
				}
				if fmt.Sprint(got) != "[a c d]" {
					t.Errorf("got %q", got)
				}
				ls, _, err := b.ListDead(b.ctx, "", 10)
				if err != nil || len(ls) != 1 || ls[0].ID != "b" || !strings.Contains(ls[0].Reason, "unreadable") {
					t.Fatalf("dead letters %+v, %v", ls, err)
				}
				b.all(b.DeleteDead(b.ctx, []string{"b"}))
				b.empty()
			})
		}
	}
}

// TestStrayEntriesLoseNoMessage puts members of every short form, and some that only look like
// messages, into every key. Messages come all the same.
func TestStrayEntriesLoseNoMessage(t *testing.T) {
	t.Parallel()
	for how := range ways(nil) {
		for n := range 15 {
			t.Run(fmt.Sprint(how, " of ", n, " bytes"), func(t *testing.T) {
				t.Parallel()
				b := setup(t)
				b.pushAfter(0, "a", "b")
				stray := strings.Repeat("\x01", n)
				for _, key := range []string{"due", "leases", "dead"} {
					must(b.t, b.raw.ZAdd(b.ctx, b.key(key), redis.Z{Score: 1, Member: stray}).Err())
				}
				for _, key := range []string{"held", "gens", "graves"} {
					must(b.t, b.raw.HSet(b.ctx, b.key(key), stray, stray).Err())
				}
				must(b.t, b.raw.RPush(b.ctx, b.key("ready"), stray).Err())
				var got []string
				for range 6 {
					for _, d := range b.claim(ways(b.Store)[how], time.Minute).Deliveries {
						got = append(got, d.ID)
						b.ack(d)
					}
				}
				if fmt.Sprint(got) != "[a b]" {
					t.Errorf("got %q", got)
				}
				if _, err := b.Stats(b.ctx); err != nil {
					t.Error(err)
				}
				if _, _, err := b.Peek(b.ctx, "", 10); err != nil {
					t.Error(err)
				}
				if _, _, err := b.ListDead(b.ctx, "", 10); err != nil {
					t.Error(err)
				}
				if _, _, err := b.ListDeadIDs(b.ctx, "", 10); err != nil {
					t.Error(err)
				}
			})
		}
	}
}
