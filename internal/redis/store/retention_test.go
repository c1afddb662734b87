package store_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/delayq/delayq/backend"
	"github.com/delayq/delayq/internal/record"
	"github.com/delayq/delayq/internal/redis/redistest"
	"github.com/delayq/delayq/internal/redis/store"
	"github.com/delayq/delayq/internal/testenv"
)

// TestManyDeadLettersSettleAtTheCap trims 100,000 letters to 10,000, and large ones. No script
// deletes more than a hundred, or many megabytes. How long the server took for the slowest is
// logged: a test cannot tell it from a busy machine.
func TestManyDeadLettersSettleAtTheCap(t *testing.T) {
	testenv.In(t, testenv.All)
	t.Parallel()
	client := testenv.Redis(t, testenv.Directive("slowlog-log-slower-than", "1000000000"), testenv.Directive("slowlog-max-len", "5000")).Client(t)
	for _, tt := range []struct{ letters, size, kept, most int }{{100_000, 100, 10_000, 100}, {300, 1 << 20, 20, 5}} {
		s := store.New(store.Config{Client: client, Prefix: "trim"}, fmt.Sprint(tt.size), nil)
		deadLetters(t, s, tt.letters, tt.size)
		must(t, client.ConfigSet(t.Context(), "slowlog-log-slower-than", "0").Err())
		for more := true; more; {
			var n int
			var err error
			n, more, err = s.TrimDead(t.Context(), backend.Retention{MaxAge: time.Hour, MaxCount: tt.kept})
			must(t, err)
			if n > tt.most {
				t.Errorf("one script deleted %d letters of %d bytes; want up to %d", n, tt.size, tt.most)
			}
		}
		must(t, client.ConfigSet(t.Context(), "slowlog-log-slower-than", "1000000000").Err())
		t.Logf("%d letters of %d bytes: the slowest script took %v", tt.letters, tt.size, slowest(t, client))
		ids := slices.Concat(redistest.Pages(t.Context(), t, s.ListDead, 1000)...)
		if len(ids) != tt.kept || ids[0].ID != fmt.Sprintf("%08d", tt.letters-tt.kept) {
			t.Errorf("%d letters of %d bytes are left, from %q on", len(ids), tt.size, ids[0].ID)
		}
	}
}

// deadLetters makes dead letters, named by their numbers.
func deadLetters(t *testing.T, s *store.Store, letters, size int) {
	t.Helper()
	const batch = 500
	for first := 0; first < letters; first += batch {
		ms := make([]backend.Message, min(batch, letters-first))
		for i := range ms {
			ms[i] = backend.Message{ID: fmt.Sprintf("%08d", first+i), Body: make([]byte, size), Due: time.Unix(1, 0)}
		}
		must(t, s.Schedule(t.Context(), ms)...)
		for n := 0; n < len(ms); {
			c, err := s.Claim(t.Context(), batch, time.Minute, "claim "+redistest.Name())
			must(t, err)
			var bs []backend.DeadLetterRequest
			for _, l := range redistest.Leases(c.Deliveries) {
				bs = append(bs, backend.DeadLetterRequest{Lease: l, Reason: "for the test"})
			}
			must(t, s.Dead(t.Context(), bs)...)
			n += len(bs)
		}
	}
}

func slowest(t *testing.T, client *redis.Client) (most time.Duration) {
	t.Helper()
	logs, err := client.SlowLogGet(t.Context(), -1).Result()
	must(t, err)
	for _, l := range logs {
		if strings.HasPrefix(strings.ToLower(l.Args[0]), "evalsha") {
			most = max(most, l.Duration)
		}
	}
	return most
}

// Letters whose record was deleted by hand go when one that died later is old enough, however many
// they are, and do not hold up others.
func TestLettersWithoutARecordAreTrimmed(t *testing.T) {
	t.Parallel()
	client := testenv.SharedRedis(t).Client(t)
	for _, tt := range []struct{ letters, size int }{{450, 10}, {20, 1 << 20}, {1, 10}} {
		testLettersWithoutARecord(t, client, tt.letters, tt.size)
	}
}

func testLettersWithoutARecord(t *testing.T, client *redis.Client, letters, size int) {
	t.Helper()
	prefix := redistest.Name()
	s := store.New(store.Config{Client: client, Prefix: prefix}, "q", nil)
	deadLetters(t, s, letters, size)
	records := client.Keys(t.Context(), prefix+":*:graves").Val()
	if len(records) != 1 {
		t.Fatalf("the records are in %q", records)
	}
	for i := range letters - 1 {
		must(t, client.HDel(t.Context(), records[0], string(record.PackID(nil, fmt.Sprintf("%08d", i)))).Err())
	}
	if n := client.HLen(t.Context(), records[0]).Val(); n != 1 {
		t.Fatalf("%d records are left", n)
	}
	if n := trimAll(t, s, time.Hour); n != 0 {
		t.Errorf("%d letters were deleted that may be young", n)
	}
	time.Sleep(2 * time.Millisecond) // the server's clock goes on
	if n := trimAll(t, s, time.Millisecond); n != letters {
		t.Errorf("%d letters of %d were deleted", n, letters)
	}
}

func trimAll(t *testing.T, s *store.Store, age time.Duration) (n int) {
	t.Helper()
	for more := true; more; {
		var some int
		var err error
		some, more, err = s.TrimDead(t.Context(), backend.Retention{MaxAge: age})
		must(t, err)
		n += some
	}
	return n
}
