package store_test

import (
	"testing"
	"time"

	"github.com/delayq/delayq/backend"
)

func (b *bench) activity() backend.Activity {
	b.t.Helper()
	s, err := b.Stats(b.ctx)
	must(b.t, err)
	return s.Activity
}

// What another program has written in the place of a count is 0, and the next count begins there.
// Fields of a newer release stay.
func TestActivityAfterAnotherProgram(t *testing.T) {
	t.Parallel()
	b := setup(t)
	for _, bad := range []string{"a text", "", "-5", "1.5", "0x10", " 7", "7\n", "9223372036854775807", "99999999999999999999"} {
		must(t, b.raw.HSet(b.ctx, b.key("counts"), "pushed", bad, "acked", 3, "late1", bad, "late99", 7, "newer", bad).Err())
		if a := b.activity(); len(bad) < 19 && a != (backend.Activity{Acked: 3}) { // longer ones are large counts
			t.Errorf("%q: got %v", bad, a)
		}
		must(t, b.Count(b.ctx, backend.Activity{Pushed: 2, Acked: 1, Lateness: backend.LatenessHistogram{1: 4, 5: 6}}))
		if a := b.activity(); a != (backend.Activity{Pushed: 2, Acked: 4, Lateness: backend.LatenessHistogram{1: 4, 5: 6}}) {
			t.Errorf("%q: got %v after a count", bad, a)
		}
		if newer := b.raw.HMGet(b.ctx, b.key("counts"), "late99", "newer").Val(); newer[0] != "7" || newer[1] != bad {
			t.Errorf("%q: fields of a newer release are %q", bad, newer)
		}
		must(t, b.raw.Del(b.ctx, b.key("counts")).Err())
	}
}

// The counts stay for an hour after the last one.
func TestActivityExpires(t *testing.T) {
	t.Parallel()
	b := setup(t)
	for range 2 { // a new key, and one that is there
		must(t, b.Count(b.ctx, backend.Activity{Pushed: 1}))
		if left := b.raw.PTTL(b.ctx, b.key("counts")).Val(); left > time.Hour || left < time.Hour-patience {
			t.Errorf("the counts expire in %v", left)
		}
		must(t, b.raw.PExpire(b.ctx, b.key("counts"), time.Minute).Err())
	}
	if a := b.activity(); a != (backend.Activity{Pushed: 2}) {
		t.Errorf("got %v", a)
	}
}
