package handle

import (
	"context"
	"errors"
	"testing"

	"github.com/delayq/delayq/backend"
)

// changes are those of a view. Each call succeeds.
type changes struct{ called int }

func (c *changes) Schedule(context.Context, []backend.Message) []error { c.called++; return nil }
func (c *changes) Ack(context.Context, []backend.Lease) []error        { c.called++; return nil }
func (c *changes) Cancel(context.Context, []string) []error            { c.called++; return nil }
func (c *changes) Reschedule(context.Context, []backend.Move) []error  { c.called++; return nil }

// TestViewOfAClosedHandle has a transaction go on when the handle is closed: no call of its view
// reaches the store.
func TestViewOfAClosedHandle(t *testing.T) {
	bubble(t, func(t *testing.T) {
		within := new(changes)
		f := open(t, &store{}, func(s *Source) { s.Within = func(any) (Changes, error) { return within, nil } })
		view, err := f.InTx(nil)
		if err != nil {
			t.Fatal(err)
		}
		calls := map[string]func() []error{
			"Schedule":   func() []error { return view.Schedule(t.Context(), make([]backend.Message, 2)) },
			"Ack":        func() []error { return view.Ack(t.Context(), make([]backend.Lease, 2)) },
			"Cancel":     func() []error { return view.Cancel(t.Context(), make([]string, 2)) },
			"Reschedule": func() []error { return view.Reschedule(t.Context(), make([]backend.Move, 2)) },
		}
		for name, call := range calls {
			if errs := call(); errs != nil {
				t.Errorf("%s of an open handle: %v", name, errs)
			}
		}
		if err := f.Close(); err != nil {
			t.Fatal(err)
		}
		for name, call := range calls {
			if errs := call(); len(errs) != 2 || !errors.Is(errs[0], backend.ErrClosed) || !errors.Is(errs[1], backend.ErrClosed) {
				t.Errorf("%s of a closed handle: %v", name, errs)
			}
		}
		equal(t, "calls that reached the store", []int{within.called}, []int{len(calls)})
		if _, err := f.InTx(nil); !errors.Is(err, backend.ErrClosed) {
			t.Errorf("InTx of a closed handle: %v", err)
		}
	})
}
