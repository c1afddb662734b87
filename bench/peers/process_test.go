package peers

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/delayq/delayq/bench/internal/load"
)

// spentBy is the processor time of a process and its children so far.
func spentBy(tb testing.TB, pid int) (d time.Duration) {
	tb.Helper()
	stats, err := filepath.Glob("/proc/[0-9]*/stat")
	load.Must(tb, err)
	for _, path := range stats {
		stat, err := os.ReadFile(path)
		if err != nil {
			continue // it has ended
		}
		// The name in brackets may hold blanks; after it come the state, the parent, and as the
		// 12th to 15th the times, in hundredths.
		words := strings.Fields(string(stat[strings.LastIndexByte(string(stat), ')')+1:]))
		if words[1] != strconv.Itoa(pid) && filepath.Base(filepath.Dir(path)) != strconv.Itoa(pid) {
			continue
		}
		for _, word := range words[11:15] {
			ticks, err := strconv.Atoi(word)
			load.Must(tb, err)
			d += time.Duration(ticks) * 10 * time.Millisecond
		}
	}
	return d
}

// resident is the memory that the kernel has given to a process.
func resident(tb testing.TB, pid int) int64 {
	tb.Helper()
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	load.Must(tb, err)
	_, after, _ := strings.Cut(string(status), "VmRSS:")
	words := strings.Fields(after)
	if len(words) == 0 {
		tb.Fatalf("process %d has no memory", pid)
	}
	kilobytes, err := strconv.ParseInt(words[0], 10, 64)
	load.Must(tb, err)
	return kilobytes << 10
}

// filesIn is what the files below a directory hold.
func filesIn(tb testing.TB, dir string) (total int64) {
	tb.Helper()
	load.Must(tb, filepath.WalkDir(dir, func(_ string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		info, err := d.Info()
		if errors.Is(err, fs.ErrNotExist) {
			return nil // a server tidies up
		}
		if err == nil {
			total += info.Size()
		}
		return err
	}))
	return total
}
