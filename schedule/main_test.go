package schedule_test

import (
	"testing"

	"go.uber.org/goleak"
)

// A Repeat leaves no goroutine.
func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }
