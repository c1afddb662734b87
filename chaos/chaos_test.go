package chaos_test

import (
	"strings"
	"testing"
	"time"

	"github.com/delayq/delayq/chaos"
)

// beside has the long form of TestChaos and TestMutants run at one time: either leaves the processors idle for half of it.
func beside(t *testing.T) {
	t.Helper()
	if *forFlag > 0 {
		t.Parallel()
	}
}

// TestChaos puts every backend through faults. Its parts share the time of -chaos.for by their weight. Without that flag it takes about three
// minutes, and leaves out what needs several servers.
func TestChaos(t *testing.T) {
	beside(t)
	total, whole := *forFlag, *forFlag > 0
	if !whole {
		total = time.Minute
	}
	t.Logf("-chaos.seed=%d", *seedFlag)
	var reports []chaos.Report
	for _, part := range parts {
		if part.several && !whole {
			continue
		}
		t.Run(part.name, func(t *testing.T) {
			length := time.Duration(float64(total) * part.share)
			v := part.venue(t)
			reports = append(reports, judged(t, v, put(t, v, *seedFlag, length), length))
		})
	}
	var b strings.Builder
	must(t, chaos.WriteReports(&b, reports))
	t.Logf("-chaos.seed=%d\n%s", *seedFlag, b.String())
}

var parts = []struct {
	name    string
	venue   venueFunc
	share   float64
	several bool // it needs several servers, or a special one
}{
	{"memory", memoryVenue, 0.05, false},
	{"zsetpoll", redisVenue("zsetpoll", 8000), 0.12, false},
	{"keyspace", redisVenue("keyspace", 6000), 0.10, false},
	{"redisson", redisVenue("redisson", 6000), 0.10, false},
	{"redisson-envelope", redisVenue("redisson-envelope", 5000), 0.08, false},
	{"rabbitmq", rabbitVenue, 0.13, false},
	{"rabbitmq-restless", restlessVenue, 0.09, false},
	{"rabbitmq-cluster", rabbitsVenue, 0.06, true},
	{"replica", replicaVenue, 0.05, true},
	{"sentinel", sentinelVenue, 0.04, true},
	{"cluster", clusterVenue, 0.05, true},
	{"cluster-failover", failoverVenue, 0.05, true},
	{"power-cut", powerVenue("zsetpoll", "everysec", everysec), 0.04, true},
	{"power-cut-redisson", powerVenue("redisson-envelope", "everysec", everysec), 0.03, true},
	{"clocks-behind", skewedVenue("zsetpoll", time.Hour), 0.02, true},
	{"clocks-ahead", skewedVenue("redisson-envelope", -time.Hour), 0.02, true},
	{"clocks-jump-zsetpoll", jumpyVenue("zsetpoll"), 0.03, true},
	{"clocks-jump-keyspace", jumpyVenue("keyspace"), 0.03, true},
	{"clocks-jump-envelope", jumpyVenue("redisson-envelope"), 0.03, true},
}
