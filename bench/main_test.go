package bench

import (
	"fmt"
	"os"
	"testing"

	"github.com/delayq/delayq/internal/testenv"
)

func TestMain(m *testing.M) {
	if spec := os.Getenv(workerEnv); spec != "" {
		if err := work(spec); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
	testenv.Main(m)
}
