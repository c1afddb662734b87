package testenv

import (
	"strings"
	"testing"
)

func TestTiersIncludeTheOnesBefore(t *testing.T) {
	for word, runs := range map[string][]bool{
		"":        {Default: true, All: false, Nightly: false},
		"default": {Default: true, All: false, Nightly: false},
		"all":     {Default: true, All: true, Nightly: false},
		"nightly": {Default: true, All: true, Nightly: true},
	} {
		t.Setenv(tierVar, word)
		for tier, want := range runs {
			r := record(t, func(tb testing.TB) { In(tb, Tier(tier)) })
			if got := r.skipped == ""; got != want || r.failed != "" {
				t.Errorf("%s=%s: a test of the tier %q runs: %v, want %v %s", tierVar, word, tiers[tier], got, want, r.failed)
			}
			if !want && !strings.Contains(r.skipped, tierVar+"="+tiers[tier]) {
				t.Errorf("%s=%s: the skip does not say how to run the test: %s", tierVar, word, r.skipped)
			}
			if got := Runs(t, Tier(tier)); got != want {
				t.Errorf("%s=%s: Runs(%q) = %v, want %v", tierVar, word, tiers[tier], got, want)
			}
		}
	}
}

func TestUnknownTierFails(t *testing.T) {
	t.Setenv(tierVar, "al")
	r := record(t, func(tb testing.TB) { In(tb, Default) })
	if !strings.Contains(r.failed, `DELAYQ_TESTS="al" is unknown; known: default, all, nightly`) {
		t.Errorf("failed with %q, skipped with %q", r.failed, r.skipped)
	}
}
