package script

import (
	"bytes"
	"errors"
	"log/slog"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/delayq/delayq/backend"
)

func TestChunked(t *testing.T) {
	t.Parallel()
	sizes := func(big, small int) []int {
		all := make([]int, big, big+small)
		for i := range all {
			all[i] = chunkBytes/2 + 1
		}
		return append(all, make([]int, small)...)
	}
	for _, tt := range []struct {
		items []int
		want  []int
	}{
		{nil, nil},
		{sizes(0, 1), []int{1}},
		{sizes(0, ChunkMessages), []int{ChunkMessages}},
		{sizes(0, 2*ChunkMessages+1), []int{ChunkMessages, ChunkMessages, 1}},
		{sizes(3, 2), []int{1, 1, 3}}, // two large ones are too much for one script
		{[]int{chunkBytes + 1, 1}, []int{1, 1}},
	} {
		var chunks []int
		errs := Chunked(tt.items, func(n int) int { return n }, func(part []int) []error {
			chunks = append(chunks, len(part))
			return nil
		})
		if !reflect.DeepEqual(chunks, tt.want) || errs != nil {
			t.Errorf("%d items: chunks %v, %v, want %v", len(tt.items), chunks, errs, tt.want)
		}
	}
	bad := errors.New("bad")
	errs := Chunked(make([]int, ChunkMessages+2), Small, func(part []int) []error {
		if len(part) == 2 {
			return []error{nil, bad}
		}
		return nil
	})
	for i, err := range errs {
		if (err != nil) != (i == ChunkMessages+1) {
			t.Errorf("item %d: %v", i, err)
		}
	}
	if len(errs) != ChunkMessages+2 {
		t.Errorf("%d outcomes", len(errs))
	}
}

func TestOutcomes(t *testing.T) {
	t.Parallel()
	sc := Parse("test", "return 1")
	outcome := func(_ int, r any) error { return OneOr(backend.ErrNotFound)(r) }
	for _, tt := range []struct {
		name  string
		reply any
		err   error
		want  []error
	}{
		{"all done", []any{int64(1), int64(1)}, nil, nil},
		{"one missing", []any{int64(1), int64(0)}, nil, []error{nil, backend.ErrNotFound}},
		{"one unknown", []any{int64(2), int64(1)}, nil, []error{backend.ErrOutcomeUnknown, nil}},
		{"call failed", nil, backend.ErrFull, []error{backend.ErrFull, backend.ErrFull}},
	} {
		errs := Outcomes(sc, 2, tt.reply, tt.err, outcome)
		if len(errs) != len(tt.want) {
			t.Errorf("%s: got %v", tt.name, errs)
			continue
		}
		for i, want := range tt.want {
			if !errors.Is(errs[i], want) || want == nil && errs[i] != nil {
				t.Errorf("%s: item %d: %v, want %v", tt.name, i, errs[i], want)
			}
		}
	}
	for _, reply := range []any{nil, "OK", []any{int64(1)}, []any{int64(1), int64(1), int64(1)}} {
		if errs := Outcomes(sc, 2, reply, nil, outcome); len(errs) != 2 || errs[0] == nil || errs[1] == nil {
			t.Errorf("the reply %v passes: %v", reply, errs)
		}
	}
}

func TestWaited(t *testing.T) {
	t.Parallel()
	for reply, want := range map[string]error{
		"OK": nil, "HELD": backend.ErrInFlight, "NONE": backend.ErrNotFound, "UNKNOWN": backend.ErrOutcomeUnknown,
	} {
		if err := Waited(reply); !errors.Is(err, want) || want == nil && err != nil {
			t.Errorf("%s: %v, want %v", reply, err, want)
		}
	}
}

func TestHeardLogsTheReason(t *testing.T) {
	t.Parallel()
	outcomes := []any{int64(1), int64(0)}
	for _, tt := range []struct {
		reply, want any
		logged      bool
	}{
		{outcomes, outcomes, false},
		{int64(1), int64(1), false},
		{[]any{outcomes, "PUBLISH: no"}, outcomes, true},
		{[]any{int64(1), "PUBLISH: no"}, int64(1), true},
		{[]any{int64(0), "key"}, []any{int64(0), "key"}, false}, // an outcome with an id
	} {
		var log bytes.Buffer
		for _, r := range []*Runner{{}, {Log: slog.New(slog.NewTextHandler(&log, nil))}} {
			if got := r.Heard(tt.reply); !reflect.DeepEqual(got, tt.want) {
				t.Errorf("%v became %v", tt.reply, got)
			}
		}
		if strings.Contains(log.String(), "PUBLISH") != tt.logged {
			t.Errorf("%v: the log has %q", tt.reply, log.String())
		}
	}
}

func TestValues(t *testing.T) {
	t.Parallel()
	at := time.UnixMilli(1_700_000_000_123)
	for _, tt := range []struct{ got, want any }{
		{Due(time.Time{}), ""},
		{Due(at), "1700000000123"},
		{Due(at.Add(time.Nanosecond)), "1700000000124"}, // never early
		{DueMS(time.UnixMilli(-1).Add(-time.Nanosecond)), int64(-1)},
		{Delay(0), int64(0)},
		{Delay(time.Nanosecond), int64(1)},
		{Delay(time.Second), int64(1_000_000)},
		{Flag(true), "1"},
		{Flag(false), "0"},
		{MS("1700000000123"), at.UTC()},
		{MS(int64(0)), time.Time{}},
		{MS("-1"), time.Time{}},
		{MSOrNone("0"), time.UnixMilli(0).UTC()},
		{MSOrNone("-1"), time.Time{}},
		{US("1700000000123456"), time.UnixMicro(1_700_000_000_123_456).UTC()},
		{Int(int64(7)), int64(7)},
		{Int("9007199254740993"), int64(9007199254740993)},
		{Int(nil), int64(0)},
		{Int("x"), int64(0)},
	} {
		if tt.got != tt.want {
			t.Errorf("got %v, want %v", tt.got, tt.want)
		}
	}
}

func TestConfirmationReply(t *testing.T) {
	t.Parallel()
	replicas := Confirmation{Replicas: 2, Within: time.Second}
	disk := Confirmation{Replicas: 1, Disk: true, Within: time.Second}
	for _, tt := range []struct {
		c     Confirmation
		reply any
		ok    bool
	}{
		{replicas, int64(2), true},
		{replicas, int64(3), true},
		{replicas, int64(1), false},
		{replicas, "2", false},
		{disk, []any{int64(1), int64(1)}, true},
		{disk, []any{int64(0), int64(1)}, false},
		{disk, []any{int64(1), int64(0)}, false},
		{disk, int64(1), false},
	} {
		err := tt.c.judge(tt.reply)
		if tt.ok != (err == nil) || err != nil && !errors.Is(err, backend.ErrUnconfirmed) {
			t.Errorf("%+v, reply %v: %v", tt.c, tt.reply, err)
		}
	}
}

// Servers return the line of a script whose command a user may not use, but not the command.
func TestNamingTheForbiddenCommand(t *testing.T) {
	t.Parallel()
	sc := Parse("test", "local x = 1\nredis.call('ZADD', KEYS[1], 1, 'a')\nreturn redis.pcall('HGET', KEYS[1], 'a')")
	const text = "NOPERM ACL failure in script: this user has no permissions, can't run this command script: f, on @user_script:"
	for line, want := range map[string]string{"2": "no permission for ZADD", "3": "no permission for HGET", "1": "", "9": "", "0": ""} {
		err := sc.naming(errors.New(text + line + "."))
		if got := strings.HasPrefix(err.Error(), "no permission for "); got != (want != "") || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("line %s: %v, want %q", line, err, want)
		}
	}
}
