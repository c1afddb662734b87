package delayq

import (
	"slices"

	"github.com/delayq/delayq/backend"
	"github.com/delayq/delayq/internal/valid"
)

// Middleware wraps a handler: to log, to measure, to open a transaction around it. The handler that
// it returns is called from many goroutines.
type Middleware func(Handler) Handler

// Use wraps the handler in middleware. The first is the outermost: it is called first and sees the
// errors of the others. A second Use adds to the first. Panics pass through middleware.
func Use(ms ...Middleware) ConsumeOption {
	return func(o *consumeOptions) error {
		if slices.ContainsFunc(ms, func(m Middleware) bool { return m == nil }) {
			return backend.Invalid("Use", valid.Described("nil"), "a func(Handler) Handler")
		}
		o.around = append(o.around, ms...)
		return nil
	}
}

func (o *consumeOptions) wrapped(h Handler) Handler {
	for _, m := range slices.Backward(o.around) {
		if h = m(h); h == nil {
			return nil
		}
	}
	return h
}
