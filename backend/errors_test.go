package backend_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/delayq/delayq/backend"
)

func TestInvalidErrorShowsTheValue(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("x", 64)
	for _, tt := range []struct {
		value any
		want  string
	}{
		{"", `""`},
		{"a\x00b\xff", `"a\x00b\xff"`},
		{long, `"` + long + `"`},
		{long + "y", `"` + long + `"… (65 bytes)`},
		{strings.Repeat("z", 1<<20), `"` + strings.Repeat("z", 64) + `"… (1048576 bytes)`},
		{-time.Second, "-1s"},
		{0, "0"},
		{nil, "<nil>"},
	} {
		err := backend.Invalid("thing", tt.value, "what fits")
		if want := "invalid thing " + tt.want + ": allowed is what fits"; err.Error() != want {
			t.Errorf("got %.100s, want %.100s", err, want)
		}
		var invalid *backend.InvalidError
		if !errors.As(err, &invalid) || invalid.What != "thing" || invalid.Value != tt.want || invalid.Allowed != "what fits" {
			t.Errorf("%v has the fields %+v", err, invalid)
		}
	}
}

func TestTypedErrorsMatchTheirSentinels(t *testing.T) {
	t.Parallel()
	sentinels := []error{
		backend.ErrClosed, backend.ErrNotFound, backend.ErrInFlight, backend.ErrLeaseLost, backend.ErrDuplicate,
		backend.ErrFull, backend.ErrUnsupported, backend.ErrInvalid, backend.ErrUnknownScheme,
	}
	for _, tt := range []struct {
		err, want error
	}{
		{backend.Invalid("a", 1, "b"), backend.ErrInvalid},
		{&backend.UnsupportedError{Backend: "b", Op: "o"}, backend.ErrUnsupported},
	} {
		for _, s := range sentinels {
			wrapped := fmt.Errorf("while testing: %w", tt.err)
			if got := errors.Is(wrapped, s); got != (s == tt.want) {
				t.Errorf("%v is %q: %v", tt.err, s, got)
			}
		}
	}
}

func TestUnsupportedErrorNamesBoth(t *testing.T) {
	t.Parallel()
	err := &backend.UnsupportedError{Backend: "rabbitmq", Op: "cancel"}
	if want := "backend rabbitmq does not support cancel"; err.Error() != want {
		t.Errorf("got %q, want %q", err, want)
	}
}

func TestEach(t *testing.T) {
	t.Parallel()
	if errs := backend.Each(2, func(int) error { return nil }); errs != nil {
		t.Errorf("without a failure Each returns %v, want nil", errs)
	}
	errs := backend.Each(3, func(i int) error {
		if i == 1 {
			return backend.ErrFull
		}
		return nil
	})
	if want := []error{nil, backend.ErrFull, nil}; !slices.Equal(errs, want) {
		t.Errorf("Each returns %v, want %v", errs, want)
	}
}

func TestFailAll(t *testing.T) {
	t.Parallel()
	for _, n := range []int{0, 1, 5} {
		errs := backend.FailAll(n, backend.ErrFull)
		if len(errs) != n {
			t.Errorf("%d errors, want %d", len(errs), n)
		}
		for i, err := range errs {
			if err != backend.ErrFull {
				t.Errorf("error %d is %v", i, err)
			}
		}
	}
}

// A lease is all that is needed to settle, so it must carry all of the fence.
func TestDeliveryGivesItsLease(t *testing.T) {
	t.Parallel()
	d := backend.Delivery{ID: "17", Token: backend.Token{Hi: 1, Lo: 2}}
	if want := (backend.Lease{ID: "17", Token: backend.Token{Hi: 1, Lo: 2}}); d.Lease() != want {
		t.Errorf("lease %+v, want %+v", d.Lease(), want)
	}
}

func TestLimitsFitTogether(t *testing.T) {
	t.Parallel()
	for _, due := range []time.Time{backend.EarliestDue, backend.LatestDue} {
		if ns := due.UnixNano(); !time.Unix(0, ns).Equal(due) {
			t.Errorf("%v does not fit into nanoseconds since 1970", due)
		}
	}
	if ms := backend.LatestDue.UnixMilli(); int64(float64(ms)) != ms || ms >= 1<<53 {
		t.Errorf("%v does not fit into a float64 of milliseconds", backend.LatestDue)
	}
}
