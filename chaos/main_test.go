package chaos_test

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/rs/zerolog"

	"github.com/delayq/delayq/chaos"
	"github.com/delayq/delayq/internal/testenv"
)

var (
	seedFlag   = flag.Uint64("chaos.seed", 0, "what the plans are made of; 0 takes the clock")
	forFlag    = flag.Duration("chaos.for", 0, "how long the load runs in all, over all venues; 0 for the short form")
	outFlag    = flag.String("chaos.out", filepath.Join(os.TempDir(), "delayq-chaos"), "where failing histories are stored")
	updateFlag = flag.Bool("chaos.update", false, "write the table of rules into docs/guarantees.md")
	planFlag   = flag.Bool("chaos.plan", false, "print the plans in full")
)

func TestMain(m *testing.M) {
	if played, err := chaos.RunRole(os.Stdin); played {
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
	flag.Parse()
	zerolog.SetGlobalLevel(zerolog.Disabled) // toxiproxy talks
	if *seedFlag == 0 {
		*seedFlag = uint64(time.Now().UnixNano())
	}
	testenv.Main(m)
}
