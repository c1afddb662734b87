package chaos

import (
	"strings"
	"testing"
	"time"
)

// TestChaos puts every backend through faults. Its parts share the time of -chaos.for. Without that
// flag it takes about three minutes, and leaves out the parts that need several servers.
func TestChaos(t *testing.T) {
	parallelInLongRun(t)
	total, long := time.Minute, *forFlag > 0
	if long {
		total = *forFlag
	}
	t.Logf("-chaos.seed=%d", *seedFlag)
	var reports []Report
	for _, part := range parts {
		if part.several && !long {
			continue
		}
		t.Run(part.name, func(t *testing.T) {
			v := part.target(t)
			reports = append(reports, check(t, v, runPlan(t, v, *seedFlag, time.Duration(float64(total)*part.share))))
		})
	}
	var b strings.Builder
	must(t, WriteReports(&b, reports))
	t.Logf("-chaos.seed=%d\n%s", *seedFlag, b.String())
}

// parallelInLongRun runs the long forms of TestChaos and TestMutants side by side: either leaves the
// processors idle for half of its time.
func parallelInLongRun(t *testing.T) {
	t.Helper()
	if *forFlag > 0 {
		t.Parallel()
	}
}

var parts = []struct {
	name    string
	target  targetFunc
	share   float64
	several bool // it needs several servers, or a special one
}{
	{"memory", memoryTarget, 0.05, false},
	{"zsetpoll", redisTarget("zsetpoll", 8000), 0.12, false},
	{"keyspace", redisTarget("keyspace", 6000), 0.10, false},
	{"redisson", redisTarget("redisson", 6000), 0.10, false},
	{"redisson-envelope", redisTarget("redisson-envelope", 5000), 0.08, false},
	{"sqlite", sqliteTarget, 0.07, false},
	{"sqlite-killed", sqliteKilledTarget, 0.06, false},
	{"postgres", postgresTarget, 0.10, false},
	{"rabbitmq", rabbitTarget, 0.13, false},
	{"rabbitmq-restless", restlessTarget, 0.09, false},
	{"rabbitmq-cluster", rabbitClusterTarget, 0.06, true},
	{"replica", replicaTarget, 0.05, true},
	{"sentinel", sentinelTarget, 0.04, true},
	{"cluster", clusterTarget, 0.05, true},
	{"cluster-failover", failoverTarget, 0.05, true},
	{"cluster-shards", shardsTarget, 0.05, true},
	{"cluster-shards-failover", shardsFailoverTarget, 0.05, true},
	{"power-cut", powerTarget("zsetpoll", "everysec", everysec), 0.04, true},
	{"power-cut-redisson", powerTarget("redisson-envelope", "everysec", everysec), 0.03, true},
	{"clocks-behind", skewedTarget("zsetpoll", time.Hour), 0.02, true},
	{"clocks-ahead", skewedTarget("redisson-envelope", -time.Hour), 0.02, true},
	{"clocks-jump-zsetpoll", jumpTarget("zsetpoll"), 0.03, true},
	{"clocks-jump-keyspace", jumpTarget("keyspace"), 0.03, true},
	{"clocks-jump-envelope", jumpTarget("redisson-envelope"), 0.03, true},
}
