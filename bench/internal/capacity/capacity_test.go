package capacity_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/delayq/delayq/bench/internal/capacity"
	"github.com/delayq/delayq/bench/internal/raw"
)

// measured has costs that are easy to reckon with: 20 µs a message of zsetpoll wherever it waits,
// and 300 bytes.
func measured() *raw.File {
	f := &raw.File{Machine: raw.Machine{Cores: 2}}
	add := func(benchmark string, metrics map[string]float64) {
		f.Results = append(f.Results, raw.Result{Benchmark: benchmark, Metrics: metrics})
	}
	for pending, bytes := range map[int]float64{1_000: 310, 10_000: 320, 100_000: 300, 1_000_000: 240} {
		add(fmt.Sprintf("BenchmarkPending/backend=zsetpoll-script/pending=%d", pending),
			map[string]float64{"B/pending": bytes, "push-us/op": 5, "take-us/op": 15})
	}
	for shards, us := range map[int]float64{1: 10, 16: 11, 64: 12} {
		add(fmt.Sprintf("BenchmarkShards/shards=%d", shards), map[string]float64{"redis-us/msg": us})
	}
	add("BenchmarkDepth/backend=memory/due=now", map[string]float64{"ns/msg-at-1k": 1000, "ns/msg-at-100k": 1400, "ns/msg-at-1M": 1700})
	add("BenchmarkFootprint/backend=memory/pending=1000000", map[string]float64{"overhead-B/msg": 60})
	add("BenchmarkFootprint/backend=memory/pending=10000000", map[string]float64{"overhead-B/msg": 64})
	return f
}

// row returns the words of the first line that begins with a name.
func row(t *testing.T, text, name string) []string {
	t.Helper()
	for line := range strings.Lines(text) {
		if words := strings.Fields(line); len(words) > 0 && words[0] == name {
			return words
		}
	}
	t.Fatalf("no line of %s: %s", name, text)
	return nil
}

func answer(l capacity.Load) string {
	var text strings.Builder
	capacity.Print(&text, measured(), l)
	return text.String()
}

func TestServers(t *testing.T) {
	l := capacity.Load{
		Pending: 1e9, Rate: 1e6, ServerMemory: 10e9, Busy: 0.5, Replicas: 1, NodeCores: 8, NodeMemory: 40e9,
	}
	for name, c := range map[string]struct {
		change func(*capacity.Load)
		want   string // servers, those for the rate, those for the memory, nodes
	}{
		"the rate decides":        {func(*capacity.Load) {}, "40 40 30 20"},
		"the memory decides":      {func(l *capacity.Load) { l.Rate = 1e5 }, "30 4 30 15"},
		"no replicas":             {func(l *capacity.Load) { l.Replicas = 0 }, "40 40 30 10"},
		"cores of a node are few": {func(l *capacity.Load) { l.NodeCores = 2 }, "40 40 30 40"},
		"a lone message":          {func(l *capacity.Load) { l.Pending, l.Rate = 1, 1 }, "1 1 1 1"},
	} {
		t.Run(name, func(t *testing.T) {
			l := l
			c.change(&l)
			if got := strings.Join(row(t, answer(l), "zsetpoll-script")[1:5], " "); got != c.want {
				t.Errorf("%s, want %s:\n%s", got, c.want, answer(l))
			}
		})
	}
}

// The cost of memory rises by 200 ns with every tenfold depth, so that a process with 1e9 / 4
// messages spends 2.079 µs on each.
func TestCostsGrowWithTheLogarithm(t *testing.T) {
	l := capacity.Defaults
	l.Busy = 1
	words := row(t, answer(l), "memory")
	if cost := words[len(words)-1]; cost != "2.1" && cost != "2.0" {
		t.Errorf("%s µs: %v", cost, words)
	}
}

// A cost that seems to fall with the depth would promise the more the more there is.
func TestCostsDoNotFall(t *testing.T) {
	f := measured()
	for i, r := range f.Results {
		if strings.HasSuffix(r.Benchmark, "zsetpoll-script/pending=100000") {
			f.Results[i].Metrics["take-us/op"] = 5
		}
	}
	var text strings.Builder
	capacity.Print(&text, f, capacity.Defaults)
	words := row(t, text.String(), "zsetpoll-script")
	if cost := words[len(words)-1]; cost != "15.0" {
		t.Errorf("%s µs, want the mean of 20 and 10: %v", cost, words)
	}
}

func TestModelsAreCheckedAgainstPointsTheyDoNotKnow(t *testing.T) {
	text := strings.Join(strings.Fields(answer(capacity.Defaults)), " ")
	for _, want := range []string{
		"zsetpoll-script bytes of a message among 1,000,000 300 240 +25 %",
		"memory µs of a message among 1,000,000 1.6 1.7 -6 %",
	} {
		if !strings.Contains(text, want) {
			t.Errorf("%q is missing: %s", want, text)
		}
	}
	if strings.Contains(text, "keyspace") {
		t.Errorf("keyspace was not measured: %s", text)
	}
}

// A message of a queue of shards costs 1.2 times the 20 µs of one without, and a server has 6 of 256 of them.
func TestOneQueue(t *testing.T) {
	words := row(t, answer(capacity.Defaults), "zsetpoll,")
	if servers, cost := words[3], words[len(words)-1]; servers != "43" || cost != "24.0" {
		t.Errorf("%s servers at %s µs, want 43 at 24.0: %v", servers, cost, words)
	}
	if text := strings.Join(strings.Fields(answer(capacity.Defaults)), " "); !strings.Contains(text, "times the cost without shards, of 16 1.2 1.1 +9 %") {
		t.Errorf("the ratio of 64 shards is not compared with that of 16: %s", text)
	}
}

func TestNothingMeasured(t *testing.T) {
	var text strings.Builder
	capacity.Print(&text, new(raw.File), capacity.Defaults)
	if text.String() != "No backend's costs were measured.\n" {
		t.Error(text.String())
	}
}

func TestCheckRefusesWhatCannotBe(t *testing.T) {
	if err := capacity.Defaults.Check(); err != nil {
		t.Error(err)
	}
	for name, change := range map[string]func(*capacity.Load){
		"pending": func(l *capacity.Load) { l.Pending = 0 }, "rate": func(l *capacity.Load) { l.Rate = -1 },
		"busy": func(l *capacity.Load) { l.Busy = 1.5 }, "replicas": func(l *capacity.Load) { l.Replicas = -1 },
		"node-cores": func(l *capacity.Load) { l.NodeCores = 0 },
	} {
		l := capacity.Defaults
		if change(&l); l.Check() == nil {
			t.Errorf("took a load with a wrong %s", name)
		}
	}
}
