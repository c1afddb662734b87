package delayq_test

import (
	"testing"

	"go.uber.org/goleak"
)

// Whatever a test starts must be over when the tests are.
func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }
