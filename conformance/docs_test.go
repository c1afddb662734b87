package conformance_test

import (
	"fmt"
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/redis/go-redis/v9"

	"github.com/delayq/delayq/backend"
	"github.com/delayq/delayq/conformance"
	"github.com/delayq/delayq/keyspace"
	"github.com/delayq/delayq/memory"
	"github.com/delayq/delayq/rabbitmq"
	"github.com/delayq/delayq/rabbitmq/tombstone"
	"github.com/delayq/delayq/redisson"
	"github.com/delayq/delayq/zsetpoll"
)

const guarantees = "../docs/guarantees.md"

// TestDocsListChecks compares the table of checks in the docs with the checks.
func TestDocsListChecks(t *testing.T) {
	compareTable(t, "<!-- checks: written by go test ./conformance -run TestDocsListChecks -update -->", "<!-- end of checks -->", checksTable())
}

// TestDocsListFeatures compares the table of features in the docs with the stores' traits.
func TestDocsListFeatures(t *testing.T) {
	compareTable(t, "<!-- features: written by go test ./conformance -run TestDocsListFeatures -update -->", "<!-- end of features -->", featuresTable(t))
}

// compareTable compares the text between two marks of the page with what it should be.
func compareTable(t *testing.T, begin, end, table string) {
	t.Helper()
	raw, err := os.ReadFile(guarantees)
	if err != nil {
		t.Fatal(err)
	}
	before, rest, ok := strings.Cut(string(raw), begin+"\n")
	_, after, ok2 := strings.Cut(rest, end)
	if !ok || !ok2 {
		t.Fatalf("%s has lost %q or %q around a table", guarantees, begin, end)
	}
	want := before + begin + "\n" + table + end + after
	if *update {
		if err := os.WriteFile(guarantees, []byte(want), 0o644); err != nil {
			t.Fatal(err)
		}
	} else if want != string(raw) {
		t.Errorf("the table at %q of %s is out of date; run this test with -update", begin, guarantees)
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

// featuresTable has a row for each feature, and a column for each store with other features. It
// needs no server: a store's traits do not change.
func featuresTable(t *testing.T) string {
	t.Helper()
	client := redis.NewClient(&redis.Options{})
	defer func() { _ = client.Close() }()
	const broker = "amqp://localhost"
	if zset, key := zsetpoll.New(client).Traits().Lacks, keyspace.New(client).Traits().Lacks; zset != key {
		t.Fatal("zsetpoll and keyspace lack other features: give each a column")
	}
	stores := []struct {
		name string
		backend.Backend
	}{
		{"memory", memory.New()},
		{"zsetpoll, keyspace", zsetpoll.New(client)},
		{"redisson, shared with Java", redisson.New(client)},
		{"redisson, envelope", redisson.New(client, redisson.WithCodec(redisson.Envelope))},
		{"rabbitmq", rabbitmq.New(broker)},
		{"rabbitmq with a tombstone store", rabbitmq.New(broker, rabbitmq.WithTombstones(tombstone.NewMemory()))},
	}

	var b strings.Builder
	b.WriteString("\n| `delayq.`… | what it is |")
	for _, s := range stores {
		fmt.Fprintf(&b, " %s |", s.name)
	}
	b.WriteString("\n|---|---|" + strings.Repeat("---|", len(stores)) + "\n")
	names := featureNames(t)
	for i, f := range backend.Features() {
		fmt.Fprintf(&b, "| `%s` | %s |", names[i], f)
		for _, s := range stores {
			b.WriteString(" " + yesOrNo(s.Traits().Supports(f)) + " |")
		}
		b.WriteString("\n")
	}
	b.WriteString("\n")
	return b.String()
}

func yesOrNo(yes bool) string {
	if yes {
		return "yes"
	}
	return "**no**"
}
