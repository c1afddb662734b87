package chaos

import (
	"fmt"
	"testing"
)

// softFailing panics where a server's handle would end the test, so that try can repeat a command: a
// broker under load sometimes does not reply to its own tools in time.
type softFailing struct{ testing.TB }

type softFailure string

// Fatalf panics with a softFailure.
func (s *softFailing) Fatalf(format string, args ...any) {
	panic(softFailure(fmt.Sprintf(format, args...)))
}

// try calls do up to three times, and ends the test when it fails each time.
func try(t *testing.T, do func()) {
	t.Helper()
	var failure softFailure
	for range 3 {
		if failure = attempt(do); failure == "" {
			return
		}
	}
	t.Fatal(string(failure))
}

func attempt(do func()) (failure softFailure) {
	defer func() {
		switch r := recover().(type) {
		case nil:
		case softFailure:
			failure = r
		default:
			panic(r)
		}
	}()
	do()
	return ""
}
