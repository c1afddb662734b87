// Package capacity computes from measured costs how many servers, nodes and bytes a load takes.
package capacity

import (
	"fmt"
	"io"
	"math"
	"sort"
	"strconv"
	"strings"
	"text/tabwriter"

	"github.com/delayq/delayq/bench/internal/raw"
)

// Load is the demand, with assumptions.
type Load struct {
	Pending float64 // messages of 100 bytes
	// messages a second that are pushed, and as many that are handed out and acknowledged
	Rate float64

	// bytes of messages that a server may hold, which leaves room for copies and fragments
	ServerMemory float64
	Busy         float64 // share of a core that a server may be busy for
	Replicas     int     // of each Redis server
	NodeCores    int
	NodeMemory   float64 // bytes
}

const gib = 1 << 30

// Defaults are a billion pending messages and a million a second.
var Defaults = Load{Pending: 1e9, Rate: 1e6, ServerMemory: 16 * gib, Busy: 0.6, Replicas: 1, NodeCores: 16, NodeMemory: 256 * gib}

// Print writes the result for each backend that f has the costs of, the assumptions, and how far
// the models are from measured points that they were not fitted to.
func Print(w io.Writer, f *raw.File, l Load) {
	models := fit(f)
	if len(models) == 0 {
		_, _ = fmt.Fprintln(w, "No backend's costs were measured.")
		return
	}
	_, _ = fmt.Fprintf(w, "%s messages of 100 bytes pending, %s a second pushed and as many handed out:\n\n", count(l.Pending), count(l.Rate))
	table := tabwriter.NewWriter(w, 0, 0, 3, ' ', 0)
	_, _ = fmt.Fprintln(table, "backend\tservers\tfor the rate\tfor the memory\tnodes\tbytes a message\tbytes with copies\tµs a message")
	for _, m := range models {
		_, _ = fmt.Fprintln(table, strings.Join(m.row(l), "\t"))
	}
	_ = table.Flush()
	assume(w, models, l)
	_, _ = fmt.Fprintln(w, "\nThe models against measured points that they were not fitted to:")
	check(w, models)
}

// row is a line of the table.
func (m model) row(l Load) []string {
	forRate, forMemory := m.serversForRate(l), 0.0
	bytes, total, memory := "not measured", "not measured", "not measured"
	copies := float64(1 + m.copies(l))
	if m.bytes > 0 {
		forMemory = math.Ceil(l.Pending * m.bytes / l.ServerMemory)
		bytes, total, memory = count(math.Round(m.bytes)), size(l.Pending*m.bytes*copies), count(forMemory)
	}
	servers := math.Max(forRate, forMemory)
	nodes := math.Ceil(servers * copies / m.serversOn(l))
	return []string{
		m.name, count(servers), count(forRate), memory, count(nodes), bytes, total, strconv.FormatFloat(1e6*m.cost(l.Pending/servers), 'f', 1, 64),
	}
}

// serversForRate is the least number that is not too busy: the more there are, the fewer wait at
// each, and the less a message costs.
func (m model) serversForRate(l Load) float64 {
	const most = 1 << 40
	return 1 + float64(sort.Search(most, func(i int) bool {
		servers := float64(i + 1)
		return l.Rate*m.cost(l.Pending/servers)*m.share(servers) <= l.Busy
	}))
}

func (m model) serversOn(l Load) float64 {
	cores := float64(l.NodeCores) / float64(m.cores)
	return math.Max(1, math.Floor(math.Min(cores, l.NodeMemory/l.ServerMemory)))
}

func (m model) copies(l Load) int {
	if m.replicas >= 0 {
		return m.replicas
	}
	return l.Replicas
}

func assume(w io.Writer, models []model, l Load) {
	_, _ = fmt.Fprintf(w, `
Assumed:
- A core is as fast as one of the machine that was measured, and nothing else keeps it busy.
- A server is busy for %.0f %% of its time at most, and holds messages in %s at most.
- A node has %d cores and %s, and a server never spans two.
- A queue lies on one server, unless it has shards: the load comes in at least as many queues as there are servers, spread evenly.
- Workers, network and disks keep up; the clients are not counted.
`, 100*l.Busy, size(l.ServerMemory), l.NodeCores, size(l.NodeMemory))
	for _, m := range models {
		_, _ = fmt.Fprintf(w, "- %s: %s\n", m.name, m.means)
	}
}

func check(w io.Writer, models []model) {
	table := tabwriter.NewWriter(w, 0, 0, 3, ' ', 0)
	_, _ = fmt.Fprintln(table, "\nbackend\twhat\tmodel\tmeasured\tdifference")
	for _, m := range models {
		for _, p := range m.checks {
			_, _ = fmt.Fprintf(table, "%s\t%s\t%.4g\t%.4g\t%+.0f %%\n", m.name, p.what, p.model, p.measured, 100*(p.model/p.measured-1))
		}
	}
	_ = table.Flush()
}

// count writes a whole number with commas.
func count(n float64) string {
	digits := strconv.FormatFloat(n, 'f', 0, 64)
	for i := len(digits) - 3; i > 0; i -= 3 {
		digits = digits[:i] + "," + digits[i:]
	}
	return digits
}

func size(bytes float64) string {
	units := []string{"B", "KiB", "MiB", "GiB"}
	for bytes >= 1024 && len(units) > 1 {
		bytes, units = bytes/1024, units[1:]
	}
	return fmt.Sprintf("%.0f %s", bytes, units[0])
}

// Check returns an error for a load that no number of servers can bear.
func (l Load) Check() error {
	for name, v := range map[string]float64{
		"pending": l.Pending, "rate": l.Rate, "server-memory": l.ServerMemory, "busy": l.Busy,
		"node-cores": float64(l.NodeCores), "node-memory": l.NodeMemory,
	} {
		if !(v > 0) || math.IsInf(v, 1) {
			return fmt.Errorf("%s must be above 0, got %v", name, v)
		}
	}
	if l.Busy > 1 || l.Replicas < 0 {
		return fmt.Errorf("a server cannot be busy for %v of its time or have %d replicas", l.Busy, l.Replicas)
	}
	return nil
}
