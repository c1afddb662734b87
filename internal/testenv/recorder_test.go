package testenv

import (
	"fmt"
	"runtime"
	"testing"
)

// recorder is a test that notes how it ends instead of ending.
type recorder struct {
	testing.TB
	skipped, failed string
}

// record runs f as a test of its own would. f's cleanups run when t ends.
func record(t *testing.T, f func(testing.TB)) *recorder {
	t.Helper()
	r := &recorder{TB: t}
	done := make(chan struct{})
	go func() {
		defer close(done)
		f(r)
	}()
	<-done
	return r
}

func (r *recorder) Skipf(format string, args ...any) {
	r.skipped = fmt.Sprintf(format, args...)
	runtime.Goexit()
}

func (r *recorder) Fatalf(format string, args ...any) {
	r.failed = fmt.Sprintf(format, args...)
	runtime.Goexit()
}
