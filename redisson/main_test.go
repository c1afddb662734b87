package redisson_test

import (
	"testing"
	"time"

	"github.com/delayq/delayq/internal/redis/redistest"
	"github.com/delayq/delayq/internal/testenv"
	"github.com/delayq/delayq/redisson"
)

func TestMain(m *testing.M) { testenv.Main(m) }

// grace is how long after a lease's end Java may take the message.
const grace = 2 * time.Second

const patience = redistest.Patience

var (
	must   = redistest.Must
	wants  = redistest.Wants
	await  = redistest.Await
	leases = redistest.Leases
	bodies = redistest.Bodies
)

// formats are the layouts that are written, and javas those that Java writes.
var (
	formats = []redisson.MemberFormat{redisson.V1, redisson.V2, redisson.Both}
	javas   = formats[:2]
)

// each runs a test for each of some layouts, on a queue of its own.
func each(t *testing.T, layouts []redisson.MemberFormat, f func(t *testing.T, p *place, layout redisson.MemberFormat)) {
	for _, layout := range layouts {
		t.Run(layout.String(), func(t *testing.T) {
			t.Parallel()
			f(t, setup(t), layout)
		})
	}
}
