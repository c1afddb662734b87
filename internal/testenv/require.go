package testenv

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
)

const requireVar = "DELAYQ_REQUIRE"

// kinds are the words that DELAYQ_REQUIRE may hold.
var kinds = []string{"redis"}

// absentError says that a server cannot be had on this machine, and how to get one.
type absentError struct{ kind, remedy string }

func (e *absentError) Error() string { return "no " + e.kind + " server: " + e.remedy }

// checkRequire refuses words that are not known: a misspelt one would require nothing, and
// nobody would notice.
func checkRequire(list string) error {
	for _, word := range words(list) {
		if !slices.Contains(kinds, word) {
			return fmt.Errorf("%s=%q: %q is unknown; known: %s", requireVar, list, word, strings.Join(kinds, ", "))
		}
	}
	return nil
}

func words(list string) []string {
	var found []string
	for word := range strings.SplitSeq(list, ",") {
		if word = strings.TrimSpace(word); word != "" {
			found = append(found, word)
		}
	}
	return found
}

// skips decides about a test that got no server: it is skipped if the machine has none and none
// is required. Else it fails.
func skips(list string, err error) bool {
	var missing *absentError
	return errors.As(err, &missing) && !slices.Contains(words(list), missing.kind)
}

// mustStart ends the test that got no server.
func mustStart(tb testing.TB, err error) {
	tb.Helper()
	list := os.Getenv(requireVar)
	switch {
	case err == nil:
	case skips(list, err):
		tb.Skipf("%v", err)
	case list != "":
		tb.Fatalf("%v (%s=%s)", err, requireVar, list)
	default:
		tb.Fatalf("%v", err)
	}
}
