package chaos

import (
	"slices"
	"testing"
	"time"

	"github.com/delayq/delayq/internal/judge"
	"github.com/delayq/delayq/internal/testenv"
)

// powerTarget is a server with a policy of syncs, whose power is cut. It runs under
// testdata/synced.c. It never rewrites its append-only file, so that only the last part of the file
// is not on the disk.
func powerTarget(backendName, policy string, declared int64) targetFunc {
	return func(t *testing.T) *target {
		t.Helper()
		s := testenv.Redis(t, testenv.AOF(), testenv.Directive("appendfsync", policy), testenv.Directive("auto-aof-rewrite-percentage", "0"),
			testenv.Directive("aof-load-truncated", "yes"), testenv.Under(t, "testdata/synced.c"))
		v := onRedis("appendfsync "+policy, Endpoint{Backend: backendName, Addr: s.Addr()}, powerCut(t, s, s.Client(t, retrying), declared))
		v.skipCalm = true
		return v
	}
}

// TestPowerCut cuts the power once, under a load with longer delays than the loss that everysec
// declares. A server that always syncs must lose nothing. The loss of everysec is counted. Without
// syncs more is lost than that, and has to be found.
func TestPowerCut(t *testing.T) {
	for _, tt := range []struct {
		policy   string
		declared int64
		rule     string // that finds the loss
	}{
		{"always", 0, ""},
		{"everysec", everysec, ""},
		{"no", everysec, "lost"},
	} {
		t.Run(tt.policy, func(t *testing.T) {
			target := powerTarget("zsetpoll", tt.policy, tt.declared)(t)
			cutAtEnd(target)
			h := runPlan(t, target, *seedFlag, 2*time.Duration(everysec))
			v := judge.Check(h)
			t.Logf("%d messages, %d lost as declared, %d violations of %v", v.Counts.Messages, v.Counts.UndoneLost, len(v.Violations), v.Rules())
			if tt.rule == "" && v.Violations != nil || tt.rule != "" && !slices.Contains(v.Rules(), tt.rule) {
				t.Errorf("-chaos.seed=%d: not found by the rule %q\n%s\n%s", *seedFlag, tt.rule, judge.Explain(h, v, 2), store(h, v))
			}
			if (v.Counts.UndoneLost > 0) != (tt.declared > 0) {
				t.Errorf("-chaos.seed=%d: %d messages are lost as declared", *seedFlag, v.Counts.UndoneLost)
			}
		})
	}
}

// cutAtEnd makes a target's fault strike alone, when everything else is over.
func cutAtEnd(v *target) {
	f := v.faults[0]
	v.faults, v.oneProcess, v.drainTime = nil, true, 10*time.Second
	v.lastFault = func(t *testing.T) judge.Window {
		t.Helper()
		d := newDirector(t, []*fault{f})
		d.strike(Strike{Kind: f.Name, Seed: *seedFlag})
		return d.windows[0]
	}
	v.mix = func(m *Mix) { m.Delay = 2 * time.Duration(everysec) }
}
