package conformance_test

import (
	"fmt"
	"os"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/redis/go-redis/v9"

	"github.com/delayq/delayq/backend"
	"github.com/delayq/delayq/conformance"
	"github.com/delayq/delayq/keyspace"
	"github.com/delayq/delayq/memory"
	"github.com/delayq/delayq/postgres"
	"github.com/delayq/delayq/rabbitmq"
	"github.com/delayq/delayq/rabbitmq/tombstone"
	"github.com/delayq/delayq/redisson"
	"github.com/delayq/delayq/sqlite"
	"github.com/delayq/delayq/zsetpoll"
)

const guarantees = "../docs/guarantees.md"

// TestDocsListChecks compares the table of checks in the docs with the checks.
func TestDocsListChecks(t *testing.T) { wantSection(t, "checks", checksTable()) }

// TestDocsListFeatures compares the table of stores and verbs in the docs with the stores' traits.
func TestDocsListFeatures(t *testing.T) { wantSection(t, "features", featuresTable(t)) }

// wantSection compares a part of the docs between two marks, or writes it.
func wantSection(t *testing.T, name, section string) {
	t.Helper()
	raw, err := os.ReadFile(guarantees)
	if err != nil {
		t.Fatal(err)
	}
	begin := fmt.Sprintf("<!-- %s: written by go test ./conformance -run %s -update -->\n", name, t.Name())
	end := fmt.Sprintf("<!-- end of %s -->", name)
	before, rest, ok := strings.Cut(string(raw), begin)
	_, after, ok2 := strings.Cut(rest, end)
	if !ok || !ok2 {
		t.Fatalf("%s has lost the marks around its table of %s", guarantees, name)
	}
	want := before + begin + section + end + after
	if *update {
		if err := os.WriteFile(guarantees, []byte(want), 0o644); err != nil {
			t.Fatal(err)
		}
	} else if want != string(raw) {
		t.Errorf("%s does not list the %s as they are; run this test with -update", guarantees, name)
	}
}

func checksTable() string {
	var b strings.Builder
	b.WriteString("\n| promise | check | rule |\n|---|---|---|\n")
	for _, c := range conformance.Checks() {
		fmt.Fprintf(&b, "| %d | `%s` | %s |\n", c.Invariant, c.Name, c.Rule)
	}
	b.WriteString("\n")
	return b.String()
}

type column struct {
	title  string
	traits backend.Traits
}

// stores are the columns of the table of features. No server is needed.
func stores(t *testing.T) []column {
	t.Helper()
	client := redis.NewClient(&redis.Options{Addr: "localhost:1"})
	t.Cleanup(func() { _ = client.Close() })
	broker := "amqp://localhost:1"
	zset := zsetpoll.New(client).Traits()
	if other := keyspace.New(client).Traits(); other.Lacks != zset.Lacks {
		t.Fatal("zsetpoll and keyspace have different features; give each a column")
	}
	return []column{
		{"memory", memory.New().Traits()},
		{"zsetpoll, keyspace", zset},
		{"redisson, shared with Java", redisson.New(client).Traits()},
		{"redisson, envelopes", redisson.New(client, redisson.WithCodec(redisson.Envelope)).Traits()},
		{"sqlite", sqlite.New("delay.db").Traits()},
		{"postgres", postgres.New(nil).Traits()},
		{"rabbitmq", rabbitmq.New(broker).Traits()},
		{"rabbitmq, tombstones", rabbitmq.New(broker, rabbitmq.WithTombstones(tombstone.NewMemory())).Traits()},
	}
}

// constant is a line that declares a constant.
var constant = regexp.MustCompile(`(?m)^\t([A-Z]\w+)(?:\s|$)`)

// featureNames are the features as programs name them, in the order of their numbers.
func featureNames(t *testing.T) (names []string) {
	t.Helper()
	source, err := os.ReadFile("../backend/feature.go")
	if err != nil {
		t.Fatal(err)
	}
	_, constants, _ := strings.Cut(string(source), "\nconst (\n")
	constants, _, _ = strings.Cut(constants, "\n)\n")
	for _, m := range constant.FindAllStringSubmatch(constants, -1) {
		names = append(names, m[1])
	}
	if len(names) != len(backend.Features()) {
		t.Fatalf("backend/feature.go declares %q, and there are %d features", names, len(backend.Features()))
	}
	return names
}

// featuresTable has a row for each feature, and one for the methods that every store has.
func featuresTable(t *testing.T) string {
	t.Helper()
	stores := stores(t)
	var b strings.Builder
	b.WriteString("\n| `delayq.`… | what it is | methods of a driver |")
	for _, s := range stores {
		fmt.Fprintf(&b, " %s |", s.title)
	}
	b.WriteString("\n|---|---|---|" + strings.Repeat("---|", len(stores)))
	optional := make(map[string]bool)
	for _, f := range backend.Features() {
		for _, verb := range f.Verbs() {
			optional[verb] = true
		}
	}
	var always []string
	methods := reflect.TypeFor[backend.Queue]()
	for i := range methods.NumMethod() {
		if name := methods.Method(i).Name; !optional[name] {
			always = append(always, name)
		}
	}
	fmt.Fprintf(&b, "\n| – | every store | %s |%s\n", inCode(always), strings.Repeat(" yes |", len(stores)))
	names := featureNames(t)
	for i, f := range backend.Features() {
		fmt.Fprintf(&b, "| `%s` | %s | %s |", names[i], f, inCode(f.Verbs()))
		for _, s := range stores {
			cell := "yes"
			if !s.traits.Supports(f) {
				cell = "**no**"
			}
			fmt.Fprintf(&b, " %s |", cell)
		}
		b.WriteString("\n")
	}
	b.WriteString("\n")
	return b.String()
}

func inCode(names []string) string {
	quoted := make([]string, len(names))
	for i, name := range names {
		quoted[i] = "`" + name + "`"
	}
	return strings.Join(quoted, ", ")
}

// describedFeatures are the rows of the table written by hand about a feature.
var describedFeatures = map[string]backend.Feature{
	"`UniqueFor`":                       backend.UniqueWindows,
	"`Replace`, `MaxWait`":              backend.Replacing,
	"`ReplaceAfterInFlight`":            backend.ReplacingInFlight,
	"headers of a nack (`NackHeaders`)": backend.ChangingHeaders,
	"limits of a message (`Attempts`, `HandlerTimeout`, `ExpiresAfter`, `Expires`)": backend.KeepingHeaders,
	"dead letters":               backend.Redriving,
	"cancel, reschedule":         backend.Cancelling,
	"peek":                       backend.Peeking,
	"get by id":                  backend.Getting,
	"`Stats`":                    backend.Counting,
	"purge":                      backend.Purging,
	"pause for all (`PauseAll`)": backend.Pausing,

	"part of your transaction (`InTx`)": backend.Transactions,
}

// TestDocsDescribeFeatures compares the table of promises, which is written by hand, with the
// traits: a cell begins with `ErrUnsupported` where the store lacks the feature, and only there.
func TestDocsDescribeFeatures(t *testing.T) {
	raw, err := os.ReadFile(guarantees)
	if err != nil {
		t.Fatal(err)
	}
	all := stores(t)
	columns := []column{all[0], all[1], all[2], all[6], all[4], all[5]} // in the order of the table
	var rows [][]string
	for line := range strings.Lines(string(raw)) {
		cells := strings.Split(strings.Trim(strings.TrimSpace(line), "|"), " | ")
		for i := range cells {
			cells[i] = strings.TrimSpace(cells[i])
		}
		rows = append(rows, cells)
	}
	for name, f := range describedFeatures {
		at := slices.IndexFunc(rows, func(cells []string) bool { return cells[0] == name })
		if at < 0 || len(rows[at]) != len(columns)+1 {
			t.Errorf("%s has no row %q with a cell for each store", guarantees, name)
			continue
		}
		for i, s := range columns {
			if says := strings.HasPrefix(rows[at][i+1], "`ErrUnsupported`"); says == s.traits.Supports(f) {
				t.Errorf("%s, %s, %s: the cell is %q, and the feature %q is supported: %v", guarantees, name, s.title, rows[at][i+1], f, s.traits.Supports(f))
			}
		}
	}
}
