package memory

import (
	"errors"
	"math"
	"net/url"
	"strings"
	"testing"

	"github.com/delayq/delayq/backend"
)

// FuzzURL wants each URL refused with a typed error, or a backend without anything set aside for
// messages to come.
func FuzzURL(f *testing.F) {
	for _, seed := range []string{
		"memory:///orders", "memory://store/orders?max_messages=10&max_bytes=1000", "memory:///o?max_messages=9223372036854775807",
		"memory:///o?max_bytes=1&max_bytes=2", "memory:///o?max_bytes=-1", "memory://u:p@h/o", "memory:o", "memory:///a/b", "memory:///o?%zz", "memory:///o#x",
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		u, err := url.Parse(text)
		if err != nil {
			t.Skip("the parser of package url refuses it")
		}
		b, queue, err := new(shared).open(t.Context(), u)
		if err != nil {
			if !errors.Is(err, backend.ErrInvalid) {
				t.Fatalf("%q is refused with %v", text, err)
			}
			return
		}
		opened := b.(*borrowed).Backend
		if messages, bytes := opened.Usage(); messages != 0 || bytes != 0 || strings.HasPrefix(queue, "/") && !strings.HasPrefix(u.Path, "//") {
			t.Fatalf("%q is queue %q of a backend with %d messages in %d bytes", text, queue, messages, bytes)
		}
	})
}

// A limit is a promise to the caller, not a request for memory.
func TestLimitsSetNothingAside(t *testing.T) {
	allocated := testing.AllocsPerRun(10, func() { New(MaxMessages(math.MaxInt), MaxBytes(math.MaxInt64)) })
	if allocated > 100 {
		t.Errorf("%v allocations for an empty backend", allocated)
	}
}
