package store_test

import (
	"encoding/binary"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/delayq/delayq/backend"
	"github.com/delayq/delayq/internal/record"
	"github.com/delayq/delayq/internal/redis/redistest"
)

// TestListsPassLeftovers lists messages that are behind more than a page of entries without a
// message.
func TestListsPassLeftovers(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.push("a", "b", "c")
	for _, d := range b.claimMany(b.Claim, time.Minute, threeIDs) {
		b.all(b.Dead(b.ctx, []backend.DeadLetterRequest{{Lease: d}}))
	}
	var strays []redis.Z
	for i := range 330 {
		strays = append(strays, redis.Z{Score: float64(i + 1), Member: string(record.PackID(nil, fmt.Sprint("stray ", i)))})
	}
	must(b.t, b.raw.ZAdd(b.ctx, b.key("dead"), strays...).Err(), b.raw.ZAdd(b.ctx, b.key("dead"), redis.Z{Score: 1}).Err())
	if ids, _, err := b.ListDeadIDs(b.ctx, "", 1000); err != nil || len(ids) != len(strays)+3 {
		t.Errorf("listed %d ids, %v", len(ids), err)
	}
	b.pushAfter(time.Hour, "d", "e", "f")
	for i := range strays {
		strays[i].Member = fmt.Sprintf("abcdefg\x00\x00\x00\x00%v", strays[i].Member)
	}
	must(b.t, b.raw.ZAdd(b.ctx, b.key("due"), strays...).Err())
	for _, limit := range []int{1, 2, 3, 1000} {
		var letters []string
		pages := redistest.Pages(b.ctx, t, b.ListDead, limit)
		for i, page := range pages {
			if len(page) == 0 && i < len(pages)-1 {
				t.Errorf("page %d of %d dead letters is empty, and not the last", i, limit)
			}
			for _, l := range page {
				letters = append(letters, l.ID)
			}
		}
		if !slices.Equal(letters, threeIDs) {
			t.Errorf("pages of %d list %q", limit, letters)
		}
		if got := b.waiting(limit); !slices.Equal(got, []string{"d", "e", "f"}) {
			t.Errorf("pages of %d show %q", limit, got)
		}
	}
}

// TestUnreadableDueTimes has ended leases whose due time cannot be read: their messages are due
// now, and no call fails.
func TestUnreadableDueTimes(t *testing.T) {
	t.Parallel()
	for how := range ways(nil) {
		for name, due := range map[string]float64{"NaN": math.NaN(), "inf": math.Inf(1), "-inf": math.Inf(-1)} {
			for _, key := range []string{"leases", "ready"} {
				t.Run(how+" "+name+" "+key, func(t *testing.T) {
					t.Parallel()
					b := setup(t)
					b.push("a")
					b.claim(b.Claim, time.Hour)
					member := b.raw.ZRange(b.ctx, b.key("leases"), 0, 0).Val()[0]
					held := string(binary.BigEndian.AppendUint64(nil, math.Float64bits(due)))
					if key == "leases" {
						held += strings.Repeat("n", 26) + "abcd"
						must(b.t, b.raw.ZAdd(b.ctx, b.key(key), redis.Z{Score: 1, Member: member}).Err())
					} else {
						must(b.t, b.raw.Del(b.ctx, b.key("leases")).Err(), b.raw.RPush(b.ctx, b.key(key), member).Err())
					}
					must(b.t, b.raw.HSet(b.ctx, b.key("held"), member, held).Err())
					b.push("b")
					if st, err := b.Stats(b.ctx); err != nil || st.Ready != 2 {
						t.Errorf("stats %+v, %v", st, err)
					}
					if page, _, err := b.Peek(b.ctx, "", 10); err != nil || len(page) != 2 {
						t.Errorf("peek %+v, %v", page, err)
					}
					got := map[string]bool{}
					for end := time.Now().Add(patience); len(got) < 2 && time.Now().Before(end); {
						for _, d := range b.claim(ways(b.Store)[how], time.Minute).Deliveries {
							got[d.ID] = true
							b.ack(d)
						}
					}
					if len(got) < 2 {
						t.Errorf("got %v", got)
					}
				})
			}
		}
	}
}

// TestForeignKeyIsFoundBeforeALease has something of another type in each key that a claim reads.
// The claim fails before it has leased anything.
func TestForeignKeyIsFoundBeforeALease(t *testing.T) {
	t.Parallel()
	for how := range ways(nil) {
		for _, key := range []string{"leases", "held", "gens", "ready"} {
			t.Run(how+" "+key, func(t *testing.T) {
				t.Parallel()
				b := setup(t)
				b.push("a")
				must(b.t, b.raw.Set(b.ctx, b.key(key), "foreign", 0).Err())
				c, err := ways(b.Store)[how](b.ctx, 10, 50*time.Millisecond, "foreign")
				if err == nil && len(c.Deliveries) == 0 {
					t.Error("the claim has met nothing")
				}
				must(b.t, b.raw.Del(b.ctx, b.key(key)).Err())
				if err == nil {
					return // it needs no such key
				}
				if d := b.next(ways(b.Store)[how], time.Minute, "a"); d.Attempt != 1 {
					t.Errorf("attempt %d", d.Attempt)
				}
			})
		}
	}
}

// TestPlaceOfADeletedMessage pushes an id again after an operator has deleted the contents. The old
// message's place, which is due before the new one, hands out nothing.
func TestPlaceOfADeletedMessage(t *testing.T) {
	t.Parallel()
	eachWay(t, func(t *testing.T, b *bench, _ string, way claimer) {
		due := time.Unix(2, 0).UTC()
		b.all(b.Schedule(b.ctx, []backend.Message{{ID: "a", Body: []byte("old"), Due: time.Unix(1, 0)}}))
		must(t, b.raw.Del(b.ctx, b.key("messages")).Err())
		b.all(b.Schedule(b.ctx, []backend.Message{{ID: "a", Body: []byte("new"), Due: due}}))
		ds := b.claim(way, time.Minute).Deliveries
		if len(ds) != 1 || string(ds[0].Body) != "new" || !ds[0].Due.Equal(due) || ds[0].Attempt != 1 {
			t.Fatalf("got %+v, want the new message alone, due at %v", ds, due)
		}
		b.all(b.Ack(b.ctx, []backend.Lease{ds[0].Lease()}))
		b.empty()
	})
}
