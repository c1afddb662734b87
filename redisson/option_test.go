package redisson_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/delayq/delayq/backend"
	"github.com/delayq/delayq/redisson"
)

// A message that a shared queue cannot keep is rejected, and affects no other message.
func TestPushOfMessagesThatJavaCannotHold(t *testing.T) {
	t.Parallel()
	p := setup(t)
	q := p.open(redisson.WithCodec(redisson.Kryo5String))
	errs := q.Schedule(p.ctx, []backend.Message{
		{Body: []byte("headers"), Headers: map[string]string{"k": "v"}}, {Body: []byte("good")}, {Body: []byte("\xff")},
	})
	if len(errs) != 3 || errs[1] != nil {
		t.Fatalf("got %v", errs)
	}
	wants(t, errs[:1], backend.ErrUnsupported)
	wants(t, errs[2:], backend.ErrInvalid)
	p.takes(q, "good")
	p.empty()
}

func TestListingsReject(t *testing.T) {
	t.Parallel()
	p := setup(t)
	b := p.backend()
	for want, call := range map[string]struct {
		queue, cursor string
		limit         int
	}{
		"invalid limit 0: allowed is 1 to 1000":                                {"q", "", 0},
		"invalid limit 1001: allowed is 1 to 1000":                             {"q", "", 1001},
		"invalid cursor \"x\": allowed is one that a listing returned":         {"q", "x", 1},
		"invalid cursor \"-1\": allowed is one that a listing returned":        {"q", "-1", 1},
		"invalid queue name \"\": allowed is 1 to 200 bytes":                   {"", "", 1},
		strings.Repeat("q", 64) + "\"… (201 bytes): allowed is 1 to 200 bytes": {strings.Repeat("q", 201), "", 1},
	} {
		_, _, pending := b.Pending(p.ctx, call.queue, call.cursor, call.limit)
		_, _, listed := b.Quarantine(call.queue).List(p.ctx, call.cursor, call.limit)
		for _, err := range []error{pending, listed} {
			if !errors.Is(err, backend.ErrInvalid) || !strings.Contains(err.Error(), want) {
				t.Errorf("got %v, want %s", err, want)
			}
		}
	}
	q := p.open()
	for _, cursor := range []string{"x", "-1", "1e3", strings.Repeat("9", 30)} {
		if _, _, err := q.ListDead(p.ctx, cursor, 1); !errors.Is(err, backend.ErrInvalid) {
			t.Errorf("cursor %q: got %v", cursor, err)
		}
	}
}
