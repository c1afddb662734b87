package testenv

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
)

const tierVar = "DELAYQ_TESTS"

// Tier is a set of tests that a target of the Makefile runs. Each tier includes those before it.
type Tier int

// The tiers. A test without a call of [In] belongs to Default.
const (
	Default Tier = iota // make test
	// make test-all: modes, clusters, other formats, tools beyond Redis and RabbitMQ
	All
	Nightly // make nightly: minutes of waiting, thousands of faults
)

// tiers are the words that DELAYQ_TESTS may hold, by tier.
var tiers = []string{Default: "default", All: "all", Nightly: "nightly"}

// In skips the test unless DELAYQ_TESTS names its tier or one that includes it.
func In(tb testing.TB, tier Tier) {
	tb.Helper()
	if selected(tb) < tier {
		tb.Skipf("in the tier %q only: set %s=%s", tiers[tier], tierVar, tiers[tier])
	}
}

// Runs reports whether the tests of a tier run, for a test that is longer there.
func Runs(tb testing.TB, tier Tier) bool {
	tb.Helper()
	return selected(tb) >= tier
}

func selected(tb testing.TB) Tier {
	tb.Helper()
	tier, err := parseTier(os.Getenv(tierVar))
	if err != nil {
		tb.Fatalf("%v", err)
	}
	return tier
}

// parseTier rejects unknown words, which would otherwise skip tests unnoticed.
func parseTier(word string) (Tier, error) {
	if word == "" {
		return Default, nil
	}
	i := slices.Index(tiers, word)
	if i < 0 {
		return Default, fmt.Errorf("%s=%q is unknown; known: %s", tierVar, word, strings.Join(tiers, ", "))
	}
	return Tier(i), nil
}
