package dashboard

import (
	"context"
	"crypto/rand"
	"errors"
	"log/slog"
	"net/http"
	"runtime/debug"
	"slices"
	"sync"
	"time"

	"github.com/delayq/delayq"
)

const (
	jobsAtOnce  = 16      // under way
	jobsKept    = 64      // with those that have ended, or wait for the user
	jobMost     = 200_000 // messages; more take another job
	jobFor      = 30 * time.Minute
	jobBatch    = 50 // messages of one call of the store, so that no call takes long
	keepJobsFor = 10 * time.Minute
)

// jobState is how far a job is.
type jobState string

// The states of a job.
const (
	counting jobState = "counting" // the messages that match
	asking   jobState = "asking"   // the user, with the count
	working  jobState = "working"
	finished jobState = "finished"
	stopped  jobState = "stopped" // by the user, by an error or by its limit of time
)

// job makes one change on all messages that a filter selects: it lists them, asks, and then changes
// those and no others.
type job struct {
	id, queue string
	change    change
	filter    filter
	began     time.Time

	mu      sync.Mutex
	state   jobState
	looked  int
	matched int
	ids     []string // of those that match, until the job ends
	more    bool     // than jobMost match
	tried   int
	result  result
	problem string
	changed time.Time
	cancel  context.CancelFunc
}

type jobs struct {
	ctx     context.Context //nolint:containedctx // it ends all jobs
	log     *slog.Logger
	running sync.WaitGroup

	mu  sync.Mutex
	all map[string]*job
}

var errJobs = errors.New("too many jobs are under way: wait for one to end, or stop one")

func newJobs(ctx context.Context, log *slog.Logger) *jobs {
	return &jobs{ctx: ctx, log: log, all: make(map[string]*job)}
}

// start counts what the filter selects, in the background.
func (js *jobs) start(queue string, c change, f filter, count func(ctx context.Context, j *job) error) (*job, error) {
	now := time.Now()
	j := &job{id: rand.Text(), queue: queue, change: c, filter: f, began: now, state: counting, changed: now}
	js.mu.Lock()
	defer js.mu.Unlock()
	active := 0
	for id, old := range js.all {
		switch state, changed := old.status(); {
		case state == counting, state == working:
			active++
		case time.Since(changed) > keepJobsFor:
			delete(js.all, id)
		}
	}
	if active >= jobsAtOnce || len(js.all) >= jobsKept || js.ctx.Err() != nil {
		return nil, errJobs
	}
	js.all[j.id] = j
	js.run(j, asking, count)
	return j, nil
}

// run calls f in the background, and then sets the state.
func (js *jobs) run(j *job, then jobState, f func(ctx context.Context, j *job) error) {
	ctx, cancel := context.WithTimeout(js.ctx, jobFor)
	j.mu.Lock()
	j.cancel = cancel
	if j.state == stopped { // between begin and here
		cancel()
	}
	j.mu.Unlock()
	js.running.Go(func() {
		defer cancel()
		err := js.guarded(func() error { return f(ctx, j) })
		j.mu.Lock()
		defer j.mu.Unlock()
		j.changed = time.Now()
		switch {
		case j.state == stopped:
		case err != nil:
			j.state, j.problem = stopped, problem(err)
		default:
			j.state = then
		}
		if j.state != asking {
			j.ids = nil // megabytes
		}
	})
}

// guarded makes an error of a panic of the functions for [Redact] and [Audit]: in a page, the server
// recovers from it, and a job must not end the process either.
func (js *jobs) guarded(f func() error) (err error) {
	defer func() {
		if p := recover(); p != nil {
			js.log.Error("delayq dashboard: a job panicked", "panic", p, "stack", string(debug.Stack()))
			err = &failure{http.StatusInternalServerError, "The job panicked: the log has the details."}
		}
	}()
	return f()
}

func (js *jobs) get(queue, id string) *job {
	js.mu.Lock()
	defer js.mu.Unlock()
	if j := js.all[id]; j != nil && j.queue == queue {
		return j
	}
	return nil
}

// of returns the jobs of a queue, the newest first.
func (js *jobs) of(queue string) []*job {
	js.mu.Lock()
	defer js.mu.Unlock()
	var all []*job
	for _, j := range js.all {
		if j.queue == queue {
			all = append(all, j)
		}
	}
	slices.SortFunc(all, func(a, b *job) int { return b.began.Compare(a.began) })
	return all
}

func (j *job) status() (jobState, time.Time) {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.state, j.changed
}

// stop ends a job where it is. What it has changed stays changed.
func (j *job) stop() {
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.state == finished || j.state == stopped {
		return
	}
	if j.state == asking {
		j.ids = nil
	}
	j.state, j.problem, j.changed = stopped, "Stopped by a user.", time.Now()
	j.cancel()
}

// begin tells whether the job may begin its work now, which it may once.
func (j *job) begin() bool {
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.state != asking || len(j.ids) == 0 {
		return false
	}
	j.state, j.changed = working, time.Now()
	return true
}

// count lists the ids of the messages that the filter selects.
func (j *job) count(ctx context.Context, list lister) error {
	for cursor := ""; ; {
		page, next, err := list(ctx, cursor, pageRead)
		if err != nil {
			return err
		}
		j.mu.Lock()
		j.looked += len(page)
		for i := range page {
			if page[i].ID == "" || !j.filter.matches(&page[i], j.began) {
				continue
			}
			if len(j.ids) == jobMost {
				j.more = true
				break
			}
			j.ids = append(j.ids, page[i].ID)
			j.matched++
		}
		enough := j.more
		j.mu.Unlock()
		if next == "" || enough {
			return nil
		}
		cursor = next
	}
}

// work changes the messages while its user may, and tells of each batch.
func (j *job) work(ctx context.Context, q delayq.Queue, may func() error, tell func(ids []string, done int, err error)) error {
	for len(j.ids) > j.tried {
		ids := j.ids[j.tried:min(j.tried+jobBatch, len(j.ids))]
		if err := ctx.Err(); err != nil {
			return err
		}
		if err := may(); err != nil {
			tell(nil, 0, err)
			return err
		}
		r, err := j.change.apply(ctx, q, ids)
		tell(ids, r.Done, err)
		j.mu.Lock()
		j.tried += len(ids)
		j.result.add(r)
		j.mu.Unlock()
		var some *delayq.BatchError
		if err != nil && !errors.As(err, &some) {
			return err
		}
	}
	return nil
}

// String says what the job is to do.
func (j *job) String() string { return sentence(j.change.String()) + ": " + j.filter.String() }

// jobStatus is a job as its page shows it.
type jobStatus struct {
	State   jobState
	Looked  string
	Matched string
	More    bool
	Tried   string
	Percent int
	Result  string
	Problem string
}

func (j *job) show() jobStatus {
	j.mu.Lock()
	defer j.mu.Unlock()
	s := jobStatus{
		State: j.state, Looked: count(int64(j.looked)), Matched: count(int64(j.matched)), More: j.more,
		Tried: count(int64(j.tried)), Result: j.result.String(), Problem: j.problem,
	}
	if j.matched > 0 {
		s.Percent = 100 * j.tried / j.matched
	}
	return s
}

// close waits for all jobs; their context has ended.
func (js *jobs) close() { js.running.Wait() }

// detached is a request whose context goes on after the reply, for [Audit].
func detached(r *http.Request) *http.Request {
	return r.WithContext(context.WithoutCancel(r.Context()))
}
