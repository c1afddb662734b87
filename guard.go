package delayq

import (
	"fmt"
	"log/slog"
	"runtime/debug"
)

// guarded calls code that the user gave, in a goroutine that must not end with it, and returns a panic as an error.
func guarded(what string, call func()) (err error) {
	defer func() {
		if v := recover(); v != nil {
			err = fmt.Errorf("%s panicked: %s\n%s", what, printed(v), debug.Stack())
		}
	}()
	call()
	return nil
}

// printed is fmt.Sprint of a value whose methods may panic with a value whose methods panic, which fmt passes on.
func printed(v any) (s string) {
	defer func() {
		if recover() != nil {
			s = fmt.Sprintf("a %T that cannot be printed", v)
		}
	}()
	return fmt.Sprint(v)
}

// logPanic logs a panic of telemetry, which a message can do without.
func logPanic(log *slog.Logger, what string, v any) {
	log.Error("delayq: "+what+" panicked", "panic", v, "stack", string(debug.Stack()))
}

// drop ends a panic of a logger. It is for defer.
func drop() { _ = recover() }
