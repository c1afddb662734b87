package dashboard_test

import (
	"context"
	"testing"

	"github.com/delayq/delayq"
	"github.com/delayq/delayq/dashboard"
	"github.com/delayq/delayq/internal/queuetest"
	"github.com/delayq/delayq/memory"
)

type ctx = context.Context

// lackingDashboard shows a store that can do little more than push and receive.
func lackingDashboard(t *testing.T) *browser {
	t.Helper()
	m := memory.New()
	t.Cleanup(func() { mustDo(t, m.Close()) })
	poor := lacking{m, []delayq.Feature{
		delayq.Peeking, delayq.Getting, delayq.Cancelling, delayq.Rescheduling, delayq.Pausing, delayq.Purging,
	}}
	return open(t, dashboard.Backend(poor, []string{"orders"}, delayq.WithLogger(queuetest.Silent)), anybody)
}
