package chaos

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/rs/zerolog"
	"go.uber.org/goleak"

	"github.com/delayq/delayq/internal/judge"
	"github.com/delayq/delayq/internal/testenv"
)

var (
	seedFlag    = flag.Uint64("chaos.seed", 0, "the seed of the plans; 0 takes the clock")
	forFlag     = flag.Duration("chaos.for", 0, "the length of the load, over all parts; 0 for the short form")
	outFlag     = flag.String("chaos.out", filepath.Join(os.TempDir(), "delayq-chaos"), "the directory for histories that break rules")
	updateFlag  = flag.Bool("chaos.update", false, "write the table of rules into docs/guarantees.md")
	faultsFlag  = flag.String("chaos.faults", "", "a regular expression: only the faults with such a name strike")
	planFlag    = flag.Bool("chaos.plan", false, "print the plans in full")
	soakFlag    = flag.Duration("chaos.soak", 0, "the length of TestSoak, over all backends; 0 skips it")
	showFlag    = flag.String("chaos.show", "", "a stored history to check again")
	messageFlag = flag.Uint("chaos.message", 0, "the message of it to draw; 0 for those that break rules")
)

func TestMain(m *testing.M) {
	if ran, err := RunRole(os.Stdin); ran {
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
	flag.Parse()
	zerolog.SetGlobalLevel(zerolog.Disabled) // the log of toxiproxy
	if *seedFlag == 0 {
		*seedFlag = uint64(time.Now().UnixNano())
	}
	// Toxiproxy 2.5 passes data on without a way out: when the client has gone, the goroutines of
	// that link wait for good, though the proxy is closed.
	testenv.Main(m,
		goleak.IgnoreAnyFunction("github.com/Shopify/toxiproxy/v2/toxics.(*ToxicStub).Run"),
		goleak.IgnoreAnyFunction("github.com/Shopify/toxiproxy/v2.(*ToxicLink).read"))
}

// TestShow checks a stored history, or draws what happened to a message.
func TestShow(t *testing.T) {
	if *showFlag == "" {
		t.Skip("-chaos.show names no history") // a tool, not a test
	}
	h, err := judge.Load(*showFlag)
	must(t, err)
	if *messageFlag > 0 {
		t.Logf("\n%s", judge.Timeline(h, uint32(*messageFlag)))
		return
	}
	v := judge.Check(h)
	t.Logf("%d violations of %v\n%s", len(v.Violations), v.Rules(), judge.Explain(h, v, 3))
}
