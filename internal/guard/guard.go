// Package guard calls code that the user gave, such as a clock or a logger. A panic there does not
// end the process.
package guard

import (
	"fmt"
	"log/slog"
	"runtime/debug"
)

// Call calls code that the user gave and returns a panic as an error. what names the code.
func Call(what string, call func()) (err error) {
	defer func() {
		if v := recover(); v != nil {
			err = fmt.Errorf("%s panicked: %s\n%s", what, Sprint(v), debug.Stack())
		}
	}()
	call()
	return nil
}

// Sprint is fmt.Sprint for a value whose methods may panic with a value whose methods panic. fmt
// passes such a panic on.
func Sprint(v any) (s string) {
	defer func() {
		if recover() != nil {
			s = fmt.Sprintf("a %T that cannot be printed", v)
		}
	}()
	return fmt.Sprint(v)
}

// Log recovers from a panic and logs it. It must be deferred itself. It is for code that a message
// can do without, such as a meter provider.
func Log(log *slog.Logger, what string) {
	if v := recover(); v != nil {
		log.Error("delayq: "+what+" panicked", "panic", v, "stack", string(debug.Stack()))
	}
}

// drop recovers from a panic of a logger. It must be deferred itself.
func drop() { _ = recover() }
