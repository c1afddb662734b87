package chaos_test

import (
	"fmt"
	"testing"
)

// soft lets a test try again what a server's handle takes for the end of the test: a broker under load sometimes does not answer its own tools
// in time.
type soft struct{ testing.TB }

type softFailure string

// Fatalf panics, for try to recover.
func (s *soft) Fatalf(format string, args ...any) { panic(softFailure(fmt.Sprintf(format, args...))) }

// try does something up to three times, and ends the test when it fails each time.
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
		if r := recover(); r != nil {
			f, ok := r.(softFailure)
			if !ok {
				panic(r)
			}
			failure = f
		}
	}()
	do()
	return ""
}
