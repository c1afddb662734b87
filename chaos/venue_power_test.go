package chaos_test

import (
	"slices"
	"testing"
	"time"

	"github.com/delayq/delayq/chaos"
	"github.com/delayq/delayq/internal/judge"
	"github.com/delayq/delayq/internal/testenv"
)

// powerVenue is a server that syncs by a policy, and whose power goes.
func powerVenue(backendName, policy string, declared int64) venueFunc {
	return func(t *testing.T) *venue {
		t.Helper()
		s := testenv.Redis(t, append(syncing(policy), testenv.Under(t, "testdata/synced.c"))...)
		admin := s.Client(t, patiently)
		at := chaos.Endpoint{Backend: backendName, Addr: s.Addr()}
		return &venue{
			name: backendName + ", appendfsync " + policy, rate: 1500, patient: time.Minute, repeats: backendName != "redisson", left: remains, brief: true,
			straight: at, bent: at, opens: []chaos.OpenFunc{at.Open}, faults: []*fault{powerCut(t, s, admin, declared)},
		}
	}
}

// TestPowerCut cuts the power once, under load that waits for longer than everysec declares. What a server that always syncs has acknowledged
// has to be there still. What everysec may lose is counted. Without syncs more is lost than that, and has to be found.
func TestPowerCut(t *testing.T) {
	for _, tt := range []struct {
		policy   string
		declared int64
		rule     string // by which it has to be found
	}{
		{"always", 0, ""},
		{"everysec", everysec, ""},
		{"no", everysec, "lost"},
	} {
		t.Run(tt.policy, func(t *testing.T) {
			h := put(t, once(powerVenue("zsetpoll", tt.policy, tt.declared)(t)), *seedFlag, 2*time.Duration(everysec))
			v := judge.Check(h)
			t.Logf("%d messages, %d lost as declared, %d violations of %v", v.Counts.Messages, v.Counts.UndoneLost, len(v.Violations), v.Rules())
			if tt.rule == "" && v.Violations != nil || tt.rule != "" && !slices.Contains(v.Rules(), tt.rule) {
				t.Errorf("-chaos.seed=%d: not found by the rule %q\n%s\n%s", *seedFlag, tt.rule, judge.Explain(h, v, 2), keep(t, h, v))
			}
			if (v.Counts.UndoneLost > 0) != (tt.declared > 0) {
				t.Errorf("-chaos.seed=%d: of what may be lost, %d were", *seedFlag, v.Counts.UndoneLost)
			}
		})
	}
}

// once has a venue's fault strike alone, when all else is over.
func once(v *venue) *venue {
	f := v.faults[0]
	v.faults, v.inside, v.patient = nil, true, 10*time.Second
	v.settle = func(t *testing.T) judge.Window {
		t.Helper()
		d := newDirector(t, []*fault{f})
		d.strike(chaos.Strike{Kind: f.Name, Dice: *seedFlag})
		return d.windows[0]
	}
	v.mix = func(m *chaos.Mix) { m.Delay = 2 * time.Duration(everysec) }
	return v
}
