package verdict

import (
	"context"
	"crypto/sha256"
	"database/sql"
	"encoding/hex"
	"errors"
	"math"
	"net/url"
	"path/filepath"
	"sync"
	"time"

	"github.com/mikestefanello/backlite"

	"github.com/delayq/delayq/backend"
)

// backliteBackend has a file and a backlite.Client for each queue: a client has one set of workers for all of its queues. The processor waits
// until the message is settled, and returns what backlite has for it: nil or an error.
type backliteBackend struct {
	handles
	dir      string
	stations shared[*backliteStation]
}

// Traits declare that processors are told neither an attempt nor an id: tasks carry ours.
func (b *backliteBackend) Traits() backend.Traits {
	return backend.Traits{
		Name: "backlite", Resolution: time.Millisecond, Leases: backend.InConnection,
		Lacks: backend.Lacking(
			backend.Cancelling, backend.Rescheduling, backend.Counting, backend.Redriving, backend.Peeking, backend.Getting, backend.Purging,
			backend.Pausing, backend.Ordering, backend.Deduplicating, backend.UniqueWindows, backend.ChangingHeaders, backend.CountingAttempts,
			backend.ExactAttempts, backend.Transactions,
		),
	}
}

func (b *backliteBackend) Open(ctx context.Context, name string, _ backend.Options) (backend.Queue, error) {
	return b.add(ctx, func() (backend.Queue, error) {
		s := b.stations.join(name, b.newStation)
		return &backliteQueue{closer: newCloser(), backliteStation: s, name: name}, s.broken
	})
}

func (b *backliteBackend) newStation(name string) *backliteStation {
	s := &backliteStation{bridge: newBridge(), backend: b}
	s.broken = s.open(name)
	return s
}

type backliteStation struct {
	*bridge
	backend *backliteBackend
	db      *sql.DB
	client  *backlite.Client
	broken  error

	starting sync.Mutex
	started  bool
}

// backliteFile opens a file as the README of backlite does, but without fsync. A connection waits for others while it switches to WAL, too.
func backliteFile(path string) (*sql.DB, error) {
	u := url.URL{
		Scheme: "file", OmitHost: true, Path: path,
		RawQuery: "_pragma=busy_timeout(5000)&_pragma=journal_mode(wal)&_pragma=synchronous(off)",
	}
	return sql.Open("sqlite3", u.String())
}

// open names the queue's file by a hash, which fits into a name.
func (s *backliteStation) open(name string) (err error) {
	sum := sha256.Sum256([]byte(name))
	if s.db, err = backliteFile(filepath.Join(s.backend.dir, hex.EncodeToString(sum[:16])+".db")); err != nil {
		return err
	}
	s.client, err = backlite.NewClient(backlite.ClientConfig{DB: s.db, NumWorkers: 64, ReleaseAfter: 10 * time.Minute})
	if err != nil {
		return err
	}
	s.client.Register(backlite.NewQueue(s.work))
	return s.client.Install()
}

// backliteTask is what tasks carry.
type backliteTask struct {
	ID      []byte
	Body    []byte
	Headers map[string][]byte
}

// Config has tasks tried again at once, without end.
func (backliteTask) Config() backlite.QueueConfig {
	return backlite.QueueConfig{Name: "messages", MaxAttempts: math.MaxInt32}
}

// work returns nil for a dead letter too: a task can only fail for good by its number of attempts.
func (s *backliteStation) work(ctx context.Context, t backliteTask) error {
	o := s.handle(ctx, backend.Delivery{ID: string(t.ID), Body: t.Body, Headers: plain(t.Headers), Attempt: 1})
	if o.word == done || o.word == dead {
		return nil
	}
	return errors.New("given back")
}

func (s *backliteStation) start() {
	s.starting.Lock()
	defer s.starting.Unlock()
	if !s.started {
		s.client.Start(context.Background())
	}
	s.started = true
}

// stop has the processors return while backlite waits for them.
func (s *backliteStation) stop() error {
	s.starting.Lock()
	defer s.starting.Unlock()
	if !s.started {
		close(s.gone)
		return s.db.Close()
	}
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	stopped := make(chan bool, 1)
	go func() { stopped <- s.client.Stop(ctx) }()
	close(s.gone)
	if !<-stopped {
		return errors.Join(errors.New("backlite's workers have not stopped within 10 s"), s.db.Close())
	}
	return s.db.Close()
}

type backliteQueue struct {
	backend.Unsupported
	closer
	*backliteStation
	name string
}

var _ backend.Queue = (*backliteQueue)(nil)

func (q *backliteQueue) Schedule(ctx context.Context, ms []backend.Message) []error {
	return each(ctx, &q.closer, ms, func(m backend.Message) error {
		op := q.client.Add(backliteTask{ID: []byte(m.ID), Body: m.Body, Headers: raw(m.Headers)}).Ctx(ctx)
		switch {
		case !m.Due.IsZero():
			op.At(m.Due)
		case m.Delay > 0:
			op.Wait(m.Delay)
		}
		_, err := op.Save()
		return err
	})
}

func (q *backliteQueue) Receive(ctx context.Context, limit int, lease time.Duration) ([]backend.Delivery, error) {
	if err := q.ready(ctx); err != nil {
		return nil, err
	}
	q.start()
	return q.receive(ctx, &q.closer, limit, lease)
}

// unwatched does not wait: backlite tells nobody when it has written down what a processor returned.
func unwatched(*visit) {}

func (q *backliteQueue) Ack(ctx context.Context, ls []backend.Lease) []error {
	return settles(ctx, &q.closer, q.bridge, ls, acked, unwatched)
}

// Nack has the processor return an error. The queue has one backoff for all tasks.
func (q *backliteQueue) Nack(ctx context.Context, rs []backend.Return) []error {
	return each(ctx, &q.closer, rs, func(r backend.Return) error {
		if r.Delay > 0 {
			return lacks("backlite", "a retry's own delay")
		}
		_, err := q.leave(returned(r))
		return err
	})
}

func (q *backliteQueue) Dead(ctx context.Context, bs []backend.DeadLetterRequest) []error {
	return settles(ctx, &q.closer, q.bridge, bs, deadLettered, unwatched)
}

func (q *backliteQueue) Extend(ctx context.Context, ls []backend.Lease, lease time.Duration) ([]time.Time, []error) {
	return extends(ctx, &q.closer, ls, func(l backend.Lease) (time.Time, error) { return q.extend(l, lease) })
}

// Close stops the client when no other handle is open.
func (q *backliteQueue) Close() error {
	return q.closeOnce(func() error { return q.backend.stations.leave(q.name) })
}
