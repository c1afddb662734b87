package main

import (
	"io"
	"os"
	"time"

	"github.com/schollz/progressbar/v3"
	"golang.org/x/term"
)

// isTerminal reports whether the file is a terminal.
func isTerminal(stream any) bool {
	f, ok := stream.(*os.File)
	return ok && term.IsTerminal(int(f.Fd()))
}

// patience is how long work takes before it has a bar.
const patience = time.Second

// A progress is a bar on a terminal for work that takes long, and nothing elsewhere. It is for one
// goroutine.
type progress struct {
	what  string
	total int64 // -1 where it is unknown
	to    io.Writer
	began time.Time
	done  int64
	bar   *progressbar.ProgressBar
}

// newProgress returns a bar on standard error, unless the command's output would appear between its
// lines.
func newProgress(std streams, what string, total int64) *progress {
	p := &progress{what: what, total: total, began: time.Now()}
	if isTerminal(std.err) && !isTerminal(std.out) {
		p.to = std.err
	}
	return p
}

func (p *progress) add(n int64) { p.reach(p.done + n) }

func (p *progress) reach(done int64) {
	p.done = done
	if p.to == nil || p.bar == nil && time.Since(p.began) < patience {
		return
	}
	if p.bar == nil {
		p.bar = progressbar.NewOptions64(p.total, progressbar.OptionSetWriter(p.to), progressbar.OptionSetDescription(p.what),
			progressbar.OptionShowCount(), progressbar.OptionShowIts(), progressbar.OptionClearOnFinish(), progressbar.OptionThrottle(100*time.Millisecond))
	}
	_ = p.bar.Set64(done)
}

// end takes the bar away.
func (p *progress) end() {
	if p.bar != nil {
		_ = p.bar.Finish()
	}
}
