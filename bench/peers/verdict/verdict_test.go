package verdict

import (
	"cmp"
	"encoding/json"
	"flag"
	"os"
	"path"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"

	"go.uber.org/goleak"

	"github.com/delayq/delayq/conformance"
	"github.com/delayq/delayq/internal/testenv"
)

var (
	update = flag.Bool("update", false, "write docs/peers.md by what is found")
	only   = flag.String("peers", "", "judge only the peers whose names match the `regexp`")
	checks = flag.String("checks", "", "run only the checks whose names match the `regexp`")
)

const (
	pinned   = "testdata/verdicts.json"
	pagePath = "../../../docs/peers.md"
)

func TestMain(m *testing.M) {
	flag.Parse()
	_ = flag.Set("rapid.checks", "10") // each is a queue more, which takes some peers seconds to open and close
	mayStay := goleak.IgnoreAnyFunction("github.com/mikestefanello/backlite.(*dispatcher).fetch")
	testenv.Main(m, mayStay)
}

// inShort are checks whose outcome no load of the machine changes.
var inShort = []string{"nack-keeps", "done-is-done", "wake-up-at-once", "dead-is-out", "longest-delay", "owns-its-memory"}

func wanted(check string) bool {
	if testing.Short() {
		return slices.Contains(inShort, check)
	}
	return regexp.MustCompile(*checks).MatchString(check)
}

// TestVerdicts judges all peers and compares with the page, but where a finding takes luck.
func TestVerdicts(t *testing.T) {
	var all []*judgement
	for _, p := range peers {
		if p.slow && testing.Short() || !regexp.MustCompile(*only).MatchString(p.name) || !p.isThere(t) {
			continue
		}
		all = append(all, p.prepare(t))
	}
	t.Run("peers", func(t *testing.T) {
		for _, j := range all {
			t.Run(j.peer.name, func(t *testing.T) {
				t.Parallel()
				j.judge(t)
			})
		}
	})
	found := make(map[string]judged)
	for _, j := range all {
		j.judgeAlone(t)
		found[j.Name] = j.judged
	}
	before := readPinned(t)
	if *update {
		write(t, before, found)
		return
	}
	for name, j := range found {
		compare(t, before[name], j)
	}
}

// isThere skips a peer whose server the machine lacks, or fails where it is required.
func (p peer) isThere(t *testing.T) (there bool) {
	if p.needs == nil {
		return true
	}
	return t.Run("needs/"+p.name, func(t *testing.T) {
		testenv.Require(t, p.needs())
		there = true
	}) && there
}

func compare(t *testing.T, before, now judged) {
	t.Helper()
	for _, f := range now.Findings {
		i := slices.IndexFunc(before.Findings, func(g finding) bool { return g.Check == f.Check })
		switch {
		case i < 0:
			t.Errorf("%s, %s: %v, which is not on the page: make it anew", now.Name, f.Check, f.Outcome)
		case before.Findings[i].Outcome == f.Outcome:
		case before.Findings[i].Sometimes || f.Sometimes:
			t.Logf("%s, %s: %v this time", now.Name, f.Check, f.Outcome)
		default:
			t.Errorf("%s, %s: %v, and on the page %v: %s", now.Name, f.Check, f.Outcome, before.Findings[i].Outcome, f.Says)
		}
	}
}

// TestPage compares the page with the verdicts that it is made of.
func TestPage(t *testing.T) {
	if got, err := os.ReadFile(pagePath); err != nil || string(got) != page(inOrder(readPinned(t))) {
		t.Errorf("docs/peers.md is not what %s makes of it (%v): go test ./verdict -run TestVerdicts -update", pinned, err)
	}
}

func readPinned(t *testing.T) map[string]judged {
	t.Helper()
	text, err := os.ReadFile(pinned)
	if os.IsNotExist(err) {
		return make(map[string]judged)
	}
	must(t, err)
	var all []judged
	must(t, json.Unmarshal(text, &all))
	byName := make(map[string]judged)
	for _, j := range all {
		byName[j.Name] = j
	}
	return byName
}

// inOrder has the columns as they are in peers.
func inOrder(byName map[string]judged) (all []judged) {
	for _, p := range peers {
		if j, ok := byName[p.name]; ok {
			all = append(all, j)
		}
	}
	return all
}

// write keeps what is known of peers and checks that were left out.
func write(t *testing.T, before, found map[string]judged) {
	t.Helper()
	for name, j := range found {
		for _, f := range before[name].Findings {
			if !slices.ContainsFunc(j.Findings, func(g finding) bool { return g.Check == f.Check }) {
				j.Findings = append(j.Findings, f)
			}
		}
		slices.SortFunc(j.Findings, byRule)
		before[name] = j
	}
	all := inOrder(before)
	text, err := json.MarshalIndent(all, "", "\t")
	must(t, err)
	must(t, os.MkdirAll("testdata", 0o755))
	must(t, os.WriteFile(pinned, append(text, '\n'), 0o600))
	must(t, os.WriteFile(pagePath, []byte(page(all)), 0o600))
}

func byRule(a, b finding) int {
	return cmp.Or(cmp.Compare(a.Rule, b.Rule), strings.Compare(a.Check, b.Check))
}

// alone are checks that see the goroutines of all others.
var alone = []string{"close-leaves-no-goroutine", "close-race"}

// slots bound what runs at once.
var slots = make(chan struct{}, 12)

// A judgement is a peer that is being judged.
type judgement struct {
	judged
	peer    peer
	harness conformance.Harness
}

func (p peer) prepare(t *testing.T) *judgement {
	h, server := p.open(t)
	vs := append(versions(t, p.modules), cmp.Or(server, p.versions))
	return &judgement{
		judged: judged{Name: p.name, Versions: strings.Trim(strings.Join(vs, ", "), ", "), Made: p.made, Claims: p.claims, Ours: p.ours},
		peer:   p, harness: h,
	}
}

// judge runs the suite, but for the checks that run alone.
func (j *judgement) judge(t *testing.T) {
	var mu sync.Mutex
	var wg sync.WaitGroup
	mine := make(chan struct{}, cmp.Or(j.peer.atOnce, 6))
	for _, c := range conformance.Checks() {
		if !wanted(c.Name) || slices.Contains(alone, c.Name) {
			continue
		}
		wg.Go(func() {
			mine <- struct{}{}
			defer func() { <-mine }()
			f := j.by(t, c, 0)
			mu.Lock()
			defer mu.Unlock()
			j.Findings = append(j.Findings, f)
		})
	}
	wg.Wait()
	for i, f := range j.Findings {
		j.Findings[i] = j.again(t, f)
	}
	slices.SortFunc(j.Findings, byRule)
	for _, f := range j.Findings {
		t.Logf("%2d %-26s %-11v %s", f.Rule, f.Check, f.Outcome, f.Says)
	}
}

// by judges by one check. Each round has queues of its own.
func (j *judgement) by(t *testing.T, c conformance.Check, round int) finding {
	if why := j.peer.unjudged[c.Name]; why != "" {
		return finding{Check: c.Name, Rule: c.Invariant, Outcome: conformance.NotJudged, Why: why}
	}
	slots <- struct{}{}
	defer func() { <-slots }()
	return j.repeat(t, c, unlessShort(max(1, j.peer.times[c.Name]), 1), round)
}

func unlessShort(full, short int) int {
	if testing.Short() {
		return short
	}
	return full
}

// repeat runs a check several times at once where what it looks for takes luck. One finding is enough.
func (j *judgement) repeat(t *testing.T, c conformance.Check, times, round int) finding {
	fs := make([]finding, times)
	var wg sync.WaitGroup
	for i := range fs {
		wg.Go(func() {
			h := j.peer.fit(j.harness, c.Name)
			h.Prefix = strings.Repeat("y", round) + strings.Repeat("x", i) // a queue of its own
			vs, err := conformance.Judge(t.Context(), h, c.Name)
			if err != nil {
				t.Error(err)
				return
			}
			fs[i] = j.peer.find(vs[0])
		})
	}
	wg.Wait()
	for _, f := range fs {
		if f.Outcome == conformance.Broken {
			return f
		}
	}
	for _, f := range fs {
		if f.Outcome != conformance.Kept {
			return f
		}
	}
	return fs[0]
}

// again runs once more what was found broken and no note explains: a machine that stands still breaks rules, too.
func (j *judgement) again(t *testing.T, f finding) finding {
	for round := range 2 {
		if f.Why != "" || f.Outcome != conformance.Broken && f.Outcome != conformance.NotJudged {
			return f
		}
		t.Logf("again: %s: %s", f.Check, f.Says)
		f = j.by(t, check(f.Check), round+1)
	}
	if f.Outcome == conformance.Broken && f.Why == "" {
		t.Errorf("%s is broken, and has no note: %s", f.Check, f.Says)
	}
	return f
}

func check(name string) conformance.Check {
	all := conformance.Checks()
	return all[slices.IndexFunc(all, func(c conformance.Check) bool { return c.Name == name })]
}

func (j *judgement) judgeAlone(t *testing.T) {
	for _, name := range alone {
		if wanted(name) {
			f := j.again(t, j.by(t, check(name), 0))
			t.Logf("%s: %s: %v %s", j.Name, name, f.Outcome, f.Says)
			j.Findings = append(j.Findings, f)
		}
	}
	slices.SortFunc(j.Findings, byRule)
}

// majorVersion ends a module's path.
var majorVersion = regexp.MustCompile("/v[0-9]+$")

// versions reads them from go.mod.
func versions(t *testing.T, modules []string) (vs []string) {
	t.Helper()
	file, err := os.ReadFile("../go.mod")
	must(t, err)
	for line := range strings.Lines(string(file)) {
		words := strings.Fields(strings.TrimPrefix(strings.TrimSpace(line), "require "))
		if len(words) >= 2 && slices.Contains(modules, words[0]) {
			vs = append(vs, path.Base(majorVersion.ReplaceAllString(words[0], ""))+" "+words[1])
		}
	}
	return vs
}
