package conformance

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"

	"github.com/delayq/delayq/backend"
)

// Check is one rule and the code that looks for a violation of it.
type Check struct {
	Name string // as the subtest is called

	// Invariant is the number of the promise in docs/guarantees.md.
	Invariant int

	// Rule is what the check enforces, in one sentence.
	Rule string

	// Alone says that the check looks at all goroutines of the process: it takes those of other
	// tests for leaks.
	Alone bool

	needs   []backend.Feature // without them the check is skipped
	ordered bool              // it needs Ordering, or a bound of disorder
	limited bool              // it needs Harness.Limited
	lister  bool              // it needs a backend that lists queues
	begins  bool              // it needs Harness.Begin
	run     func(*testRun)
}

// Checks returns all checks, by invariant.
func Checks() []Check {
	all := slices.Concat(
		dueChecks, lossChecks, peekChecks, getChecks, contentChecks, idChecks, duplicateChecks, uniqueChecks, replaceChecks, replaceInFlightChecks, leaseChecks, cancelChecks,
		orderChecks, attemptChecks, deadChecks, closeChecks, workerChecks, wakeChecks,
		ownLimitChecks, chaosChecks, leftoverChecks, purgeChecks, pauseChecks, inputChecks, modelChecks, limitChecks, batchChecks, everywhereChecks,
		clientChecks, manyChecks, queuesChecks, fullChecks, transactionChecks, featureChecks,
	)
	slices.SortStableFunc(all, func(a, b Check) int { return cmp.Compare(a.Invariant, b.Invariant) })
	return all
}

// Run runs every check as a subtest. A check of a feature that the backend does not claim is
// skipped with the reason.
func Run(t *testing.T, h Harness) {
	runSome(t, h, func(Check) bool { return true })
}

func runSome(t *testing.T, h Harness, some func(Check) bool) {
	for _, c := range Checks() {
		if !some(c) {
			continue
		}
		t.Run(c.Name, func(t *testing.T) {
			if h.Parallel && !c.Alone {
				t.Parallel()
			}
			switch v := c.judge(t.Context(), h); {
			case v.Skipped != "":
				t.Skip(v.Skipped)
			case v.Err != nil:
				t.Error(v.Err)
			}
		})
	}
}

// Verdict is the result of one check. [Verdict.Outcome] sums it up.
type Verdict struct {
	Check   Check
	Skipped string // the missing claim
	Err     error  // a [*Violation], or the error that stopped the check
}

// Outcome sums up a verdict.
type Outcome int

// Outcomes.
const (
	Kept       Outcome = iota // the check found nothing
	Broken                    // Err has a [*Violation]
	NotOffered                // the backend does not claim a feature that the check needs: Skipped names it
	NotJudged                 // the check did not run to its end: Err has the reason
)

var outcomeNames = [...]string{Kept: "kept", Broken: "broken", NotOffered: "not offered", NotJudged: "not judged"}

// String returns the outcome as delayq verify shows it.
func (o Outcome) String() string {
	if o < 0 || int(o) >= len(outcomeNames) {
		return fmt.Sprintf("Outcome(%d)", int(o))
	}
	return outcomeNames[o]
}

// Outcome returns whether the rule is kept. Errors after the end of the context prove nothing.
func (v Verdict) Outcome() Outcome {
	var broken *Violation
	switch {
	case errors.As(v.Err, &broken) && !errors.Is(v.Err, errStopped):
		return Broken
	case v.Err != nil:
		return NotJudged
	case v.Skipped != "":
		return NotOffered
	default:
		return Kept
	}
}

// errStopped marks an error of a check that was being stopped.
var errStopped = errors.New("the check was stopped")

// Violation is a broken rule.
type Violation struct {
	Check  string
	Rule   string
	Detail string
}

func (v *Violation) Error() string {
	return fmt.Sprintf("%s: %s\nthe rule is: %s", v.Check, v.Detail, v.Rule)
}

// Judge runs the named checks, all of them when there are no names, and returns a verdict for each.
func Judge(ctx context.Context, h Harness, names ...string) ([]Verdict, error) {
	checks, err := named(names)
	if err != nil {
		return nil, err
	}
	var vs []Verdict
	for _, c := range checks {
		if err := ctx.Err(); err != nil {
			return vs, err
		}
		vs = append(vs, c.judge(ctx, h))
	}
	return vs, nil
}

// Verify runs the named checks, all of them when there are no names, and returns their violations,
// joined, or nil.
func Verify(ctx context.Context, h Harness, names ...string) error {
	vs, err := Judge(ctx, h, names...)
	errs := []error{err}
	for _, v := range vs {
		errs = append(errs, v.Err)
	}
	return errors.Join(errs...)
}

// Skip is a check that needs a feature which the backend does not claim.
type Skip struct{ Check, Reason string }

// Skips returns the checks that [Run] would skip, for a golden file.
func Skips(ctx context.Context, h Harness) ([]Skip, error) {
	t, err := newTestRun(ctx, h, Check{Name: "skips"})
	if err != nil {
		return nil, err
	}
	var skips []Skip
	for _, c := range Checks() {
		if reason := t.missing(c); reason != "" {
			skips = append(skips, Skip{c.Name, reason})
		}
	}
	return skips, t.close()
}

func named(names []string) ([]Check, error) {
	all := Checks()
	if len(names) == 0 {
		return all, nil
	}
	var checks []Check
	for _, name := range names {
		i := slices.IndexFunc(all, func(c Check) bool { return c.Name == name })
		if i < 0 {
			return nil, fmt.Errorf("conformance: no check is called %q", name)
		}
		checks = append(checks, all[i])
	}
	return checks, nil
}

// judge runs one check on a new backend.
func (c Check) judge(ctx context.Context, h Harness) (v Verdict) {
	v.Check = c
	t, err := newTestRun(ctx, h, c)
	if err != nil {
		v.Err = fmt.Errorf("%s: setting up: %w", c.Name, err)
		return v
	}
	defer func() { v.Err = errors.Join(v.Err, t.close()) }()
	if v.Skipped = t.missing(c); v.Skipped == "" {
		v.Err = t.attempt()
	}
	if ctx.Err() != nil {
		v.Err = errors.Join(v.Err, errStopped)
	}
	return v
}
