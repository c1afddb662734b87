package interop

import (
	"fmt"
	"runtime"
	"testing"
)

// noted is a test that notes how it ends instead of ending.
type noted struct {
	testing.TB
	how string
}

func (n *noted) Helper() {}

func (n *noted) Fatalf(format string, args ...any) { n.end("failed: "+format, args) }

func (n *noted) Skipf(format string, args ...any) { n.end("skipped: "+format, args) }

func (n *noted) end(format string, args []any) {
	n.how = fmt.Sprintf(format, args...)
	runtime.Goexit()
}
