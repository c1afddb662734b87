// Package demo plays the scenes that delay queues are bought for on a real queue, or replays a
// file of messages through one, and judges by its own notes whether the queue kept its promises.
package demo

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/url"
	"os/exec"
	"strings"
	"time"

	"github.com/delayq/delayq"
	"github.com/delayq/delayq/cmd/delayq/internal/human"
)

// The outcomes that are not success.
var (
	ErrBroken      = errors.New("a promise was broken: see the summary")
	ErrInterrupted = errors.New("interrupted")
)

// Config is what a run is made of. Its caller has validated it.
type Config struct {
	URL      string        // of the queue; "" is a new one in memory
	Speed    float64       // how many times as fast
	Workers  int           // how many messages are handled at once
	Patience time.Duration // how long nothing happens before what is missing is lost
	Input    string        // a file to replay, "-" for Stdin; "" plays the scenes
	Stdin    io.Reader
	Out      io.Writer
	Color    bool
	Logger   *slog.Logger // takes the library's log

	// Self is this program with other arguments, not yet started. It ends with the context.
	Self func(ctx context.Context, args ...string) *exec.Cmd
}

// Run plays the scenes or replays the input, ends with the summary line, and returns ErrBroken,
// ErrInterrupted, or what kept it from running.
func Run(ctx context.Context, cfg Config) error {
	var messages []message
	if cfg.Input != "" {
		var err error
		if messages, err = load(ctx, cfg); err != nil {
			return err
		}
	}
	r := newRun(cfg)
	if err := r.open(ctx); err != nil {
		return err
	}
	return r.finish(ctx, r.play(ctx, messages))
}

// A run is one demo from its start to its summary.
type run struct {
	Config
	tag    string // begins the names made here, so that as ids they are nobody else's
	queue  delayq.Queue
	names  *names
	ledger *ledger
	say    *narrator
}

func newRun(cfg Config) *run {
	tag := strings.ToLower(rand.Text()[:6])
	if cfg.URL == "" {
		cfg.URL = "memory:///demo-" + tag
	}
	return &run{
		Config: cfg,
		tag:    tag + "-",
		ledger: newLedger(),
		say:    newNarrator(cfg.Out, cfg.Color),
	}
}

func (r *run) play(ctx context.Context, messages []message) error {
	if r.Input != "" {
		return r.replay(ctx, messages)
	}
	return r.playScenes(ctx)
}

func (r *run) open(ctx context.Context) error {
	q, err := r.openQueue(ctx)
	if err != nil {
		return err
	}
	if err := requireEmpty(ctx, q); err != nil {
		return errors.Join(err, q.Close())
	}
	r.queue = q
	r.names = &names{areIDs: q.Supports(delayq.OwnIDs), ids: make(map[string]string), names: make(map[string]string)}
	return nil
}

func (r *run) openQueue(ctx context.Context, opts ...delayq.Option) (delayq.Queue, error) {
	return delayq.Open(ctx, r.URL, append(opts, delayq.WithLogger(r.Logger))...)
}

// requireEmpty keeps the demo away from a queue that somebody works with: it would take their
// messages, and mistake them for a fault.
func requireEmpty(ctx context.Context, q delayq.Queue) error {
	n, err := count(ctx, q)
	if err == nil && n > 0 {
		return fmt.Errorf("the queue holds %s: the demo needs one of its own", human.Count(int(n), "message"))
	}
	return err
}

// count returns how many messages of any kind the queue holds; 0 where the backend cannot count
// all.
func count(ctx context.Context, q delayq.Queue) (int64, error) {
	if !q.Supports(delayq.CountingScheduled) {
		return 0, nil
	}
	s, err := q.Stats(ctx)
	return s.Scheduled + s.Ready + s.InFlight + s.Dead, err
}

// where is the queue's URL as it may be shown.
func (r *run) where() string {
	u, err := url.Parse(r.URL)
	if err != nil {
		return "(unreadable URL)"
	}
	u.RawQuery = "" // may hold a password too
	return u.Redacted()
}

// name is the part of a message's name that means something to the reader.
func (r *run) name(whole string) string { return strings.TrimPrefix(whole, r.tag) }
