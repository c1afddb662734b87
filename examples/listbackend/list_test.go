package list_test

import (
	"context"
	"testing"
	"time"

	"github.com/delayq/delayq/backend"
	"github.com/delayq/delayq/conformance"
	list "github.com/delayq/delayq/examples/listbackend"
)

// Nothing else decides whether a backend is right.
func TestConformance(t *testing.T) {
	harness := conformance.Harness{
		New:      func(context.Context) (backend.Backend, func(), error) { return list.New(), nil, nil },
		Parallel: true,
		Slack:    5 * time.Second, // on a busy machine
		Patience: 3 * time.Minute,
	}
	t.Run("real time", func(t *testing.T) { conformance.Run(t, harness) })
	harness.Virtual = true
	t.Run("virtual time", func(t *testing.T) { conformance.Run(t, harness) })
}
