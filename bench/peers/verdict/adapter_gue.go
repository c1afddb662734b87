package verdict

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/vgarvardt/gue/v5"
	"github.com/vgarvardt/gue/v5/adapter"
	"github.com/vgarvardt/gue/v5/adapter/pgxv5"

	"github.com/delayq/delayq/backend"
)

// gueBackend runs a gue.WorkerPool for each queue that somebody receives from. Its WorkFunc waits until the message is settled, and returns what gue has
// for it: nil, an error with a time of its own, ErrDiscardJob.
type gueBackend struct {
	handles
	pool     *pgxpool.Pool // for all but the workers
	client   *gue.Client
	stations shared[*gueStation]
}

const (
	gueLooks   = 5 * time.Second // between looks of a worker that has found nothing, by default
	gueWorkers = 64
)

func newGueBackend(pool *pgxpool.Pool) (*gueBackend, error) {
	client, err := gue.NewClient(pgxv5.NewConnPool(pool))
	return &gueBackend{pool: pool, client: client}, err
}

// Traits declare the interval of the workers' looks, and ids of gue's making. A job's bytes are its body.
func (b *gueBackend) Traits() backend.Traits {
	return backend.Traits{
		Name: "gue", Resolution: time.Microsecond, Sweep: gueLooks, Leases: backend.InConnection,
		Lacks: backend.Lacking(
			backend.Rescheduling, backend.Counting, backend.Redriving, backend.Peeking, backend.Getting, backend.Purging, backend.Pausing,
			backend.Ordering, backend.OwnIDs, backend.KeepingHeaders, backend.Deduplicating, backend.Transactions,
		),
	}
}

func (b *gueBackend) Open(ctx context.Context, name string, _ backend.Options) (backend.Queue, error) {
	return b.add(ctx, func() (backend.Queue, error) {
		return &gueQueue{closer: newCloser(), gueStation: b.stations.join(name, b.newStation)}, nil
	})
}

func (b *gueBackend) newStation(name string) *gueStation {
	return &gueStation{bridge: newBridge(), backend: b, name: name, held: make(map[string]*gueTx)}
}

// A gueStation has a pool of connections of its own, one for each worker: a worker keeps its connection for as long as it has a job.
type gueStation struct {
	*bridge
	backend *gueBackend
	name    string

	starting sync.Mutex
	pool     *pgxpool.Pool // from the first Receive on
	cancel   context.CancelFunc
	ended    chan error

	noting sync.Mutex
	held   map[string]*gueTx // of jobs in handlers, by id
}

// guePool tells of the end of transactions, which gue does not.
type guePool struct{ adapter.ConnPool }

func (p guePool) Begin(ctx context.Context) (adapter.Tx, error) {
	tx, err := p.ConnPool.Begin(ctx)
	return &gueTx{Tx: tx, ended: make(chan struct{})}, err
}

type gueTx struct {
	adapter.Tx
	once  sync.Once
	ended chan struct{}
	err   error // of the first Commit
}

func (t *gueTx) Commit(ctx context.Context) error {
	err := t.Tx.Commit(ctx)
	t.once.Do(func() {
		t.err = err
		close(t.ended)
	})
	return err
}

// wait returns when gue has written down what a handler returned.
func (t *gueTx) wait() error {
	select {
	case <-t.ended:
		return t.err
	case <-time.After(10 * time.Second):
		return errors.New("gue has not committed within 10 s")
	}
}

// start starts the workers, which from then on have up to 64 jobs in handlers.
func (s *gueStation) start() error {
	s.starting.Lock()
	defer s.starting.Unlock()
	if s.pool != nil {
		return nil
	}
	config := s.backend.pool.Config()
	config.MaxConns = gueWorkers
	pool, err := pgxpool.NewWithConfig(context.Background(), config)
	if err != nil {
		return err
	}
	s.pool = pool
	client, err := gue.NewClient(guePool{pgxv5.NewConnPool(pool)})
	if err != nil {
		return err
	}
	workers, err := gue.NewWorkerPool(client, gue.WorkMap{"message": s.work}, gueWorkers,
		gue.WithPoolQueue(s.name), gue.WithPoolPollStrategy(gue.RunAtPollStrategy), gue.WithPoolPollInterval(gueLooks))
	if err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(context.Background())
	s.cancel, s.ended = cancel, make(chan error, 1)
	go func() { s.ended <- workers.Run(ctx) }()
	return nil
}

// stop rolls the transactions of jobs in handlers back, as gue does when the context of its workers ends.
func (s *gueStation) stop() (err error) {
	s.starting.Lock()
	defer s.starting.Unlock()
	defer close(s.gone)
	if s.cancel != nil {
		s.cancel()
		err = <-s.ended
	}
	if s.pool != nil {
		s.pool.Close()
	}
	return err
}

func (s *gueStation) work(ctx context.Context, job *gue.Job) error {
	id := job.ID.String()
	s.hold(id, job.Tx().(*gueTx))
	defer s.hold(id, nil)
	o := s.handle(ctx, backend.Delivery{ID: id, Body: job.Args, Due: job.RunAt, Attempt: int(job.ErrorCount) + 1})
	switch o.word {
	case done:
		return nil
	case dead:
		return gue.ErrDiscardJob(o.reason)
	default:
		return gue.ErrRescheduleJobAt(ceil(time.Now().Add(o.delay), time.Microsecond), "given back")
	}
}

func (s *gueStation) hold(id string, tx *gueTx) {
	s.noting.Lock()
	defer s.noting.Unlock()
	if tx == nil {
		delete(s.held, id)
		return
	}
	s.held[id] = tx
}

func (s *gueStation) holder(id string) *gueTx {
	s.noting.Lock()
	defer s.noting.Unlock()
	return s.held[id]
}

type gueQueue struct {
	backend.Unsupported
	closer
	*gueStation
}

var _ backend.Queue = (*gueQueue)(nil)

func (q *gueQueue) Schedule(ctx context.Context, ms []backend.Message) []error {
	i := -1
	return each(ctx, &q.closer, ms, func(m backend.Message) error {
		i++
		if len(m.Headers) > 0 {
			return lacks("gue", "headers")
		}
		job := &gue.Job{Queue: q.name, Type: "message", Args: m.Body, RunAt: microsecondDue(m)}
		err := q.backend.client.Enqueue(ctx, job)
		if err == nil {
			ms[i].ID = job.ID.String()
		}
		return err
	})
}

func (q *gueQueue) Receive(ctx context.Context, limit int, lease time.Duration) ([]backend.Delivery, error) {
	if err := q.ready(ctx); err != nil {
		return nil, err
	}
	if err := q.start(); err != nil {
		return nil, err
	}
	return q.receive(ctx, &q.closer, limit, lease)
}

// gueSettle has the WorkFunc return, and waits until its transaction has ended.
func gueSettle[T any](ctx context.Context, q *gueQueue, items []T, what func(T) (backend.Lease, outcome)) []error {
	return each(ctx, &q.closer, items, func(item T) error {
		lease, o := what(item)
		tx := q.holder(lease.ID) // the WorkFunc forgets it
		if _, err := q.leave(lease, o); err != nil {
			return err
		}
		return tx.wait()
	})
}

func (q *gueQueue) Ack(ctx context.Context, ls []backend.Lease) []error {
	return gueSettle(ctx, q, ls, acked)
}

func (q *gueQueue) Nack(ctx context.Context, rs []backend.Return) []error {
	return gueSettle(ctx, q, rs, returned)
}

// Dead discards the job: gue keeps no dead letters.
func (q *gueQueue) Dead(ctx context.Context, bs []backend.DeadLetterRequest) []error {
	return gueSettle(ctx, q, bs, deadLettered)
}

func (q *gueQueue) Extend(ctx context.Context, ls []backend.Lease, lease time.Duration) ([]time.Time, []error) {
	return extends(ctx, &q.closer, ls, func(l backend.Lease) (time.Time, error) { return q.extend(l, lease) })
}

// Cancel locks the job and deletes it. gue has one error for a job that is not there and for one that another transaction has locked.
func (q *gueQueue) Cancel(ctx context.Context, ids []string) []error {
	return each(ctx, &q.closer, ids, func(id string) error {
		var wanted gue.Job
		if err := wanted.ID.UnmarshalText([]byte(id)); err != nil {
			return backend.ErrNotFound
		}
		job, err := q.backend.client.LockJobByID(ctx, wanted.ID)
		if errors.Is(err, adapter.ErrNoRows) {
			return backend.ErrNotFound
		}
		if err != nil {
			return err
		}
		if err := job.Delete(ctx); err != nil {
			return errors.Join(err, job.Tx().Rollback(context.WithoutCancel(ctx)))
		}
		return job.Done(ctx)
	})
}

// Close stops the workers when no other handle is open.
func (q *gueQueue) Close() error {
	return q.closeOnce(func() error { return q.backend.stations.leave(q.name) })
}
