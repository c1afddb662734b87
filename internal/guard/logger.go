package guard

import (
	"context"
	"log/slog"
)

// A guardedLog is the handler of a user's logger. It drops records at which that panics.
type guardedLog struct{ slog.Handler }

// Logger returns a logger that never panics.
func Logger(l *slog.Logger) *slog.Logger { return slog.New(guardedLog{l.Handler()}) }

func (h guardedLog) Enabled(ctx context.Context, level slog.Level) (enabled bool) {
	defer drop()
	return h.Handler.Enabled(ctx, level)
}

func (h guardedLog) Handle(ctx context.Context, r slog.Record) error {
	defer drop()
	return h.Handler.Handle(ctx, r)
}

func (h guardedLog) WithAttrs(attrs []slog.Attr) (with slog.Handler) {
	with = h //nolint:wastedassign // returned after a panic
	defer drop()
	return guardedLog{h.Handler.WithAttrs(attrs)}
}

func (h guardedLog) WithGroup(name string) (with slog.Handler) {
	with = h //nolint:wastedassign // returned after a panic
	defer drop()
	return guardedLog{h.Handler.WithGroup(name)}
}
