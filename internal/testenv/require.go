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
var kinds = []string{"redis", "rabbitmq", "java", beanstalkdKind, postgresKind, pgbouncerKind, "shells", chromiumKind}

// absentError reports that the machine lacks a program, and how to get it.
type absentError struct{ kind, remedy string }

func (e *absentError) Error() string { return "no " + e.kind + " here: " + e.remedy }

// checkRequire rejects unknown words: a misspelt one would silently require nothing.
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

// skips reports whether an error skips a test: the machine lacks a program that is not required.
// Other errors fail the test.
func skips(list string, err error) bool {
	var missing *absentError
	return errors.As(err, &missing) && !slices.Contains(words(list), missing.kind)
}

// Require ends the test when err is not nil. The test is skipped where err reports that the machine
// lacks a program that DELAYQ_REQUIRE does not name, and fails otherwise.
func Require(tb testing.TB, err error) {
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
