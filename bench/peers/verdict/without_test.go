package verdict

import (
	"context"
	"errors"
	"log/slog"
	"math"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/beanstalkd/go-beanstalk"
	"github.com/hibiken/asynq"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/mikestefanello/backlite"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/riverqueue/river"
	"github.com/riverqueue/river/riverdriver/riverpgxv5"
	"github.com/riverqueue/river/rivertype"
	"github.com/vgarvardt/gue/v5"
	"github.com/vgarvardt/gue/v5/adapter"
	"github.com/vgarvardt/gue/v5/adapter/pgxv5"
	"maragu.dev/goqite"

	"github.com/delayq/delayq/internal/testenv"
)

// These tests have no adapter: what the suite says of a peer, its own client shows alone. One that fails tells that the peer has
// changed, and that the page is to be made anew.

func must(tb testing.TB, err error) {
	if err != nil {
		tb.Helper()
		tb.Fatal(err)
	}
}

// lateness collects how late messages came, by what was asked for.
type lateness struct {
	mu   sync.Mutex
	all  []time.Duration
	full chan struct{}
	n    int
}

func expecting(n int) *lateness { return &lateness{full: make(chan struct{}), n: n} }

func (l *lateness) note(due time.Time) {
	late := time.Since(due)
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.all = append(l.all, late); len(l.all) == l.n {
		close(l.full)
	}
}

// early waits for all and counts those that came before they were due.
func (l *lateness) early(t *testing.T) (n int, least, most time.Duration) {
	t.Helper()
	select {
	case <-l.full:
	case <-time.After(30 * time.Second):
		t.Fatalf("%d of %d messages came within 30 s", len(l.all), l.n)
	}
	least, most = math.MaxInt64, math.MinInt64
	for _, d := range l.all {
		if least, most = min(least, d), max(most, d); d < 0 {
			n++
		}
	}
	return n, least, most
}

// spreadDues are times that no whole second is near.
func spreadDues(n int) []time.Time {
	dues := make([]time.Time, n)
	for i := range dues {
		dues[i] = time.Now().Truncate(time.Second).Add(2*time.Second + time.Duration(i)*time.Second/2 + 400*time.Millisecond)
	}
	return dues
}

// runAsynq has a server handle tasks that are due at times.
func runAsynq(t *testing.T, n int, interval time.Duration) *lateness {
	t.Helper()
	opt := asynq.RedisClientOpt{Addr: testenv.Redis(t).Addr()}
	client := asynq.NewClient(opt)
	t.Cleanup(func() { must(t, client.Close()) })
	server := asynq.NewServer(opt, asynq.Config{LogLevel: asynq.FatalLevel, DelayedTaskCheckInterval: interval, TaskCheckInterval: interval})
	l := expecting(n)
	must(t, server.Start(asynq.HandlerFunc(func(_ context.Context, task *asynq.Task) error {
		var due time.Time
		if err := due.UnmarshalBinary(task.Payload()); err != nil {
			return err
		}
		l.note(due)
		return nil
	})))
	t.Cleanup(server.Shutdown)
	for _, due := range spreadDues(n) {
		payload, err := due.MarshalBinary()
		must(t, err)
		_, err = client.Enqueue(asynq.NewTask("early", payload), asynq.ProcessAt(due))
		must(t, err)
	}
	return l
}

func TestEarlyWithoutAdapterAsynq(t *testing.T) {
	t.Parallel()
	n, least, _ := runAsynq(t, 8, 100*time.Millisecond).early(t)
	if n == 0 {
		t.Error("asynq is early no more")
	}
	t.Logf("%d of 8 early, the most by %v", n, -least)
}

// TestLateWithoutAdapterAsynq has the defaults, which its documentation tells: the suite allows for them.
func TestLateWithoutAdapterAsynq(t *testing.T) {
	if testing.Short() {
		t.Skip("waits for seconds to show what its documentation says") // about asynq, nothing of ours
	}
	t.Parallel()
	_, _, most := runAsynq(t, 12, 0).early(t)
	if most < time.Second {
		t.Error("asynq is late no more")
	}
	t.Logf("late by up to %v", most)
}

// TestSpoiltWithoutAdapterAsynq has a handler write to its payload and fail.
func TestSpoiltWithoutAdapterAsynq(t *testing.T) {
	t.Parallel()
	opt := asynq.RedisClientOpt{Addr: testenv.Redis(t).Addr()}
	client := asynq.NewClient(opt)
	defer func() { must(t, client.Close()) }()
	server := asynq.NewServer(opt, asynq.Config{
		LogLevel: asynq.FatalLevel, DelayedTaskCheckInterval: 100 * time.Millisecond, TaskCheckInterval: 100 * time.Millisecond,
		RetryDelayFunc: func(int, error, *asynq.Task) time.Duration { return 0 },
	})
	second := make(chan string, 1)
	must(t, server.Start(asynq.HandlerFunc(func(ctx context.Context, task *asynq.Task) error {
		if retried, _ := asynq.GetRetryCount(ctx); retried == 1 {
			second <- string(task.Payload())
			return nil
		}
		copy(task.Payload(), "spoilt")
		return errors.New("try again")
	})))
	defer server.Shutdown()
	_, err := client.Enqueue(asynq.NewTask("spoil", []byte("pushed")))
	must(t, err)
	select {
	case got := <-second:
		if got != "spoilt" {
			t.Errorf("the second attempt has %q: asynq keeps what was pushed", got)
		}
	case <-time.After(20 * time.Second):
		t.Fatal("no second attempt")
	}
}

// streamOf makes a stream for scheduled messages, with a consumer.
func streamOf(t *testing.T) (jetstream.JetStream, jetstream.Consumer) {
	t.Helper()
	conn, err := nats.Connect(startNATS(t))
	must(t, err)
	t.Cleanup(conn.Close)
	js, err := jetstream.New(conn)
	must(t, err)
	s, err := js.CreateStream(t.Context(), jetstream.StreamConfig{Name: "S", Subjects: []string{"wait.*", "due"}, AllowMsgSchedules: true})
	must(t, err)
	c, err := s.CreateConsumer(t.Context(), jetstream.ConsumerConfig{AckPolicy: jetstream.AckExplicitPolicy, FilterSubject: "due"})
	must(t, err)
	return js, c
}

func runNATS(t *testing.T, count int, schedule func(*nats.Msg, time.Time) []jetstream.PublishOpt) *lateness {
	t.Helper()
	js, c := streamOf(t)
	l := expecting(count)
	consuming, err := c.Consume(func(m jetstream.Msg) {
		var due time.Time
		if due.UnmarshalBinary(m.Data()) == nil && m.Ack() == nil {
			l.note(due)
		}
	})
	must(t, err)
	t.Cleanup(func() { consuming.Stop(); <-consuming.Closed() })
	for _, due := range spreadDues(count) {
		m := nats.NewMsg("wait." + due.Format("150405000"))
		m.Data, err = due.MarshalBinary()
		must(t, err)
		m.Subject = "wait." + nats.NewInbox()[len("_INBOX."):]
		_, err = js.PublishMsg(t.Context(), m, schedule(m, due)...)
		must(t, err)
	}
	return l
}

func TestEarlyWithoutAdapterNATS(t *testing.T) {
	t.Parallel()
	n, least, _ := runNATS(t, 8, func(_ *nats.Msg, due time.Time) []jetstream.PublishOpt {
		return []jetstream.PublishOpt{jetstream.WithScheduleAt(due), jetstream.WithScheduleTarget("due")}
	}).early(t)
	if n == 0 {
		t.Error("nats.go is early no more")
	}
	t.Logf("%d of 8 early, the most by %v", n, -least)
}

// TestEarlyWithoutAdapterNATSHeader shows that the server is not: the client cuts what it is given.
func TestEarlyWithoutAdapterNATSHeader(t *testing.T) {
	t.Parallel()
	n, least, _ := runNATS(t, 8, func(m *nats.Msg, due time.Time) []jetstream.PublishOpt {
		m.Header.Set(jetstream.ScheduleHeader, "@at "+due.UTC().Format(time.RFC3339Nano))
		m.Header.Set(jetstream.ScheduleTargetHeader, "due")
		return nil
	}).early(t)
	if n > 0 {
		t.Errorf("%d of 8 came early, the most by %v, from the server", n, -least)
	}
}

func TestHeadersWithoutAdapterNATS(t *testing.T) {
	t.Parallel()
	js, c := streamOf(t)
	m := nats.NewMsg("due")
	m.Header.Set("crlf", "\r\n")
	_, err := js.PublishMsg(t.Context(), m)
	must(t, err)
	got, err := c.Next()
	must(t, err)
	if v := got.Headers().Get("crlf"); v == "\r\n" {
		t.Error("nats.go keeps the ends of lines in headers")
	}
}

// TestStaleAckWithoutAdapterNATS acknowledges what another worker has by now.
func TestStaleAckWithoutAdapterNATS(t *testing.T) {
	t.Parallel()
	js, _ := streamOf(t)
	c, err := js.CreateConsumer(t.Context(), "S", jetstream.ConsumerConfig{
		Durable: "stale", AckPolicy: jetstream.AckExplicitPolicy, AckWait: time.Second, FilterSubject: "due",
	})
	must(t, err)
	_, err = js.Publish(t.Context(), "due", nil)
	must(t, err)
	first, err := c.Next()
	must(t, err)
	second, err := c.Next(jetstream.FetchMaxWait(10 * time.Second))
	must(t, err)
	if err := first.DoubleAck(t.Context()); err != nil {
		t.Errorf("NATS refuses a stale acknowledgement: %v", err)
	}
	if info, err := c.Info(t.Context()); err != nil || info.NumAckPending > 0 {
		t.Errorf("the other worker's message is not done (%v)", err)
	}
	_ = second
}

func dialBeanstalkd(t *testing.T, addr string) *beanstalk.Conn {
	t.Helper()
	c, err := beanstalk.Dial("tcp", addr)
	must(t, err)
	t.Cleanup(func() { _ = c.Close() })
	return c
}

func TestEarlyWithoutAdapterBeanstalk(t *testing.T) {
	t.Parallel()
	c := dialBeanstalkd(t, startBeanstalkd(t))
	const delay = 1900 * time.Millisecond
	for range 10 { // on a busy machine it may come late enough for once
		pushed := time.Now()
		_, err := c.Put([]byte("x"), 0, delay, time.Minute)
		must(t, err)
		id, _, err := c.Reserve(time.Minute)
		must(t, err)
		if time.Since(pushed) < delay {
			return
		}
		must(t, c.Delete(id))
	}
	t.Error("go-beanstalk is early no more")
}

// TestStaleDeleteWithoutAdapterBeanstalkd deletes a job that has gone back to the queue.
func TestStaleDeleteWithoutAdapterBeanstalkd(t *testing.T) {
	t.Parallel()
	addr := startBeanstalkd(t)
	c, other := dialBeanstalkd(t, addr), dialBeanstalkd(t, addr)
	id, err := c.Put([]byte("x"), 0, 0, time.Minute)
	must(t, err)
	_, _, err = c.Reserve(time.Second)
	must(t, err)
	must(t, c.Release(id, 0, 0))
	if err := other.Delete(id); err != nil {
		t.Errorf("beanstalkd refuses the delete of who has not reserved: %v", err)
	}
}

// TestStuckWithoutAdapterBeanstalkd looks for a job that its worker keeps beyond its time to run, as some of them do.
func TestStuckWithoutAdapterBeanstalkd(t *testing.T) {
	if testing.Short() {
		t.Skip("takes luck, and minutes without") // about beanstalkd, nothing of ours
	}
	t.Parallel()
	const rounds = 400
	var stuck atomic.Int64
	var wg sync.WaitGroup
	for range 4 {
		addr := startBeanstalkd(t)
		wg.Go(func() {
			for i := range rounds / 4 {
				if stuck.Load() > 0 {
					return
				}
				if stays(t, addr, i) {
					stuck.Add(1)
				}
			}
		})
	}
	wg.Wait()
	if stuck.Load() == 0 {
		t.Errorf("in %d rounds each job came back after its time to run", rounds)
	}
}

// stays has a worker reserve a job for one second and do nothing, and another one wait for it for four.
func stays(t *testing.T, addr string, i int) bool {
	worker, err := beanstalk.Dial("tcp", addr)
	if err != nil {
		t.Error(err)
		return false
	}
	defer func() { _ = worker.Close() }()
	other, err := beanstalk.Dial("tcp", addr)
	if err != nil {
		t.Error(err)
		return false
	}
	defer func() { _ = other.Close() }()
	tube := "t" + string(rune('a'+i%26))
	id, err := beanstalk.NewTube(worker, tube).Put([]byte("x"), 0, 0, time.Second)
	if err != nil {
		t.Error(err)
		return false
	}
	if _, _, err := beanstalk.NewTubeSet(worker, tube).Reserve(time.Second); err != nil {
		t.Error(err)
		return false
	}
	_, _, err = beanstalk.NewTubeSet(other, tube).Reserve(4 * time.Second)
	if errors.Is(err, beanstalk.ErrTimeout) {
		job, _ := worker.StatsJob(id)
		t.Logf("round %d: four seconds later a job with a time to run of 1 s is %s, with %s s left", i, job["state"], job["time-left"])
		return true
	}
	_ = other.Delete(id)
	return false
}

// TestStaleDeleteWithoutAdapterGoqite has a worker that is late delete a message that another one has.
func TestStaleDeleteWithoutAdapterGoqite(t *testing.T) {
	t.Parallel()
	h, _ := openGoqite(t)
	b, _, err := h.New(t.Context())
	must(t, err)
	t.Cleanup(func() { must(t, b.Close()) })
	ctx, db := t.Context(), b.(*goqiteBackend).db
	late := goqite.New(goqite.NewOpts{DB: db, Name: "q", Timeout: time.Millisecond})
	other := goqite.New(goqite.NewOpts{DB: db, Name: "q", Timeout: time.Minute})
	must(t, late.Send(ctx, goqite.Message{Body: []byte("x")}))
	m, err := late.Receive(ctx)
	must(t, err)
	again, err := other.ReceiveAndWait(ctx, 10*time.Millisecond)
	must(t, err)
	if again.ID != m.ID {
		t.Fatalf("got %s after %s", again.ID, m.ID)
	}
	must(t, late.Delete(ctx, m.ID))
	var left int
	must(t, db.QueryRowContext(ctx, "SELECT count(*) FROM goqite").Scan(&left))
	if left != 0 {
		t.Error("goqite's Delete is fenced now")
	}
}

// runBacklite has a client of one worker handle tasks.
func runBacklite(t *testing.T, handle func(context.Context, backliteTask) error) *backlite.Client {
	t.Helper()
	db, err := backliteFile(filepath.Join(t.TempDir(), "queue.db"))
	must(t, err)
	t.Cleanup(func() { must(t, db.Close()) })
	c, err := backlite.NewClient(backlite.ClientConfig{DB: db, NumWorkers: 1, ReleaseAfter: time.Minute})
	must(t, err)
	must(t, c.Install())
	c.Register(backlite.NewQueue(handle))
	c.Start(t.Context())
	return c
}

// TestEarlyWithoutAdapterBacklite has tasks due just before the end of a millisecond. A busy machine is too slow to have them early, in most rounds.
func TestEarlyWithoutAdapterBacklite(t *testing.T) {
	if testing.Short() {
		t.Skip("rarely early on a busy machine; a long run measures it") // a finding about backlite: no code of delayq runs here
	}
	t.Parallel()
	const rounds = 10
	for range rounds {
		if n, least := earlyOfBacklite(t, 50); n > 0 {
			t.Logf("%d of 50 early, the most by %v", n, -least)
			return
		}
	}
	t.Errorf("backlite is early no more, in %d rounds", rounds)
}

func earlyOfBacklite(t *testing.T, n int) (early int, least time.Duration) {
	t.Helper()
	l := expecting(n)
	c := runBacklite(t, func(_ context.Context, task backliteTask) error {
		var due time.Time
		if err := due.UnmarshalBinary(task.Body); err != nil {
			return err
		}
		l.note(due)
		return nil
	})
	begin := time.Now().Truncate(time.Millisecond).Add(time.Second)
	for i := range n {
		due := begin.Add(time.Duration(i+1)*20*time.Millisecond - 1)
		body, err := due.MarshalBinary()
		must(t, err)
		_, err = c.Add(backliteTask{Body: body}).At(due).Save()
		must(t, err)
	}
	early, least, _ = l.early(t)
	if !c.Stop(t.Context()) {
		t.Error("backlite has not stopped")
	}
	return early, least
}

// TestStopWithoutAdapterBacklite stops a client whose worker is busy while another task waits for it. It is not parallel, since it looks at all
// goroutines.
func TestStopWithoutAdapterBacklite(t *testing.T) {
	before := waitingFetches()
	begun, release := make(chan struct{}, 2), make(chan struct{})
	c := runBacklite(t, func(context.Context, backliteTask) error {
		begun <- struct{}{}
		<-release
		return nil
	})
	_, err := c.Add(backliteTask{}).Save()
	must(t, err)
	<-begun
	_, err = c.Add(backliteTask{}).Save()
	must(t, err)
	if !soon(func() bool { return waitingFetches() > before }) {
		t.Fatal("backlite does not look for the second task while its worker is busy")
	}
	stopped := make(chan bool, 1)
	go func() { stopped <- c.Stop(t.Context()) }()
	close(release)
	if !<-stopped {
		t.Fatal("backlite has not stopped")
	}
	if soon(func() bool { return waitingFetches() == before }) {
		t.Error("backlite leaves no goroutine when it stops")
	}
}

// waitingFetches counts the goroutines of backlite that wait for a free worker.
func waitingFetches() int {
	stacks := make([]byte, 8<<20)
	return strings.Count(string(stacks[:runtime.Stack(stacks, true)]), "backlite.(*dispatcher).waitForWorkers")
}

// soon waits until ok, for up to 2 s.
func soon(ok func() bool) bool {
	for end := time.Now().Add(2 * time.Second); !ok(); time.Sleep(10 * time.Millisecond) { // a poll with a deadline
		if time.Now().After(end) {
			return false
		}
	}
	return true
}

// TestLockedWithoutAdapterGue has a worker look for a job while another one gives its job back. Sometimes the first one's transaction then locks
// both: the job that it has, and the one that was given back, which nobody can get when it is due.
func TestLockedWithoutAdapterGue(t *testing.T) {
	if testing.Short() {
		t.Skip("a race in gue that needs many rounds; a long run has them") // a finding about gue: no code of delayq runs here
	}
	testenv.Require(t, lacksPostgres())
	t.Parallel()
	c := dialGue(t)
	const rounds = 20_000
	for i := range rounds {
		if late := givesBackWhileLooking(t, c, time.Duration(i%40)*10*time.Microsecond); late > 0 {
			t.Logf("round %d: for %v a job was due, and no worker could get it while another job was being worked on", i, late)
			return
		}
	}
	t.Errorf("in %d rounds each job could be had when it was due", rounds)
}

func dialGue(t *testing.T) *gue.Client {
	t.Helper()
	s := testenv.Postgres(t, "fsync=off")
	installGue(t, s.URL())
	pool, err := pgxpool.New(t.Context(), s.URL())
	must(t, err)
	t.Cleanup(pool.Close)
	c, err := gue.NewClient(pgxv5.NewConnPool(pool))
	must(t, err)
	return c
}

// givesBackWhileLooking returns for how long the job that was given back was due and could not be had, 0 where nobody has locked it.
func givesBackWhileLooking(t *testing.T, c *gue.Client, pause time.Duration) (late time.Duration) {
	t.Helper()
	ctx, now := t.Context(), time.Now()
	first, second := &gue.Job{Type: "x", RunAt: now.Add(-2 * time.Second)}, &gue.Job{Type: "x", RunAt: now.Add(-time.Second)}
	must(t, c.EnqueueBatch(ctx, []*gue.Job{first, second}))
	worker, err := c.LockNextScheduledJob(ctx, "")
	must(t, err)
	due, given := time.Now().Add(100*time.Millisecond), make(chan error, 1)
	go func() {
		time.Sleep(pause) // another pause in each round, so that some rounds meet the other worker's query
		given <- worker.Error(ctx, gue.ErrRescheduleJobAt(due, "try again"))
	}()
	other, err := c.LockNextScheduledJob(ctx, "")
	must(t, err)
	must(t, <-given)
	back, err := c.LockJobByID(ctx, first.ID)
	if !errors.Is(err, adapter.ErrNoRows) {
		must(t, err)
		finish(t, other, back)
		return 0
	}
	time.Sleep(time.Until(due) + time.Second) // the finding itself: a second after its due time the job is still locked
	back, err = c.LockNextScheduledJob(ctx, "")
	must(t, err)
	if back == nil {
		late = time.Since(due)
	}
	finish(t, other)
	if back == nil {
		back, err = c.LockNextScheduledJob(ctx, "")
		must(t, err)
	}
	finish(t, back)
	return late
}

func finish(t *testing.T, jobs ...*gue.Job) {
	t.Helper()
	for _, j := range jobs {
		must(t, errors.Join(j.Delete(t.Context()), j.Done(t.Context())))
	}
}

// A riverEnd is a job of river whose worker ends with an error of this text.
type riverEnd struct {
	Text []byte `json:"text"`
}

func (riverEnd) Kind() string { return "end" }

type riverEnder struct {
	river.WorkerDefaults[riverEnd]
}

func (*riverEnder) Work(_ context.Context, job *river.Job[riverEnd]) error {
	return errors.New(string(job.Args.Text))
}

// TestStuckWithoutAdapterRiver has a job end with an error whose text has a NUL, between two with a plain error. River writes down the end of the
// first job alone: the client tries again and again to write the second one's, together with all that end later.
func TestStuckWithoutAdapterRiver(t *testing.T) {
	testenv.Require(t, lacksPostgres())
	t.Parallel()
	c := runRiver(t)
	if before := endOfRiver(t, c, "plain", time.Minute); before != rivertype.JobStateRetryable {
		t.Fatalf("before, a job whose worker fails is %s", before)
	}
	if got := endOfRiver(t, c, "a\x00b", 10*time.Second); got != rivertype.JobStateRunning {
		t.Errorf("with a NUL it is %s", got)
	}
	if got := endOfRiver(t, c, "plain", 10*time.Second); got != rivertype.JobStateRunning {
		t.Errorf("after it, a job whose worker fails is %s", got)
	}
}

func runRiver(t *testing.T) *river.Client[pgx.Tx] {
	t.Helper()
	s := testenv.Postgres(t, "fsync=off")
	migrate(t, s.URL())
	pool, err := pgxpool.New(t.Context(), s.URL())
	must(t, err)
	t.Cleanup(pool.Close)
	workers := river.NewWorkers()
	river.AddWorker(workers, &riverEnder{})
	c, err := river.NewClient(riverpgxv5.New(pool), &river.Config{
		Queues: map[string]river.QueueConfig{river.QueueDefault: {MaxWorkers: 4}}, Workers: workers, Logger: slog.New(slog.DiscardHandler),
	})
	must(t, err)
	must(t, c.Start(context.WithoutCancel(t.Context())))
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(t.Context()), 30*time.Second)
		defer cancel()
		_ = c.StopAndCancel(ctx) // it cannot write down the end of a job
	})
	return c
}

// endOfRiver returns the state of a job that has ended with an error: the one that river has written down, or "running" when it has
// written none for so long after the start.
func endOfRiver(t *testing.T, c *river.Client[pgx.Tx], text string, within time.Duration) (state rivertype.JobState) {
	t.Helper()
	inserted, err := c.Insert(t.Context(), riverEnd{Text: []byte(text)}, nil)
	must(t, err)
	await := func(within time.Duration, ok func(rivertype.JobState) bool) {
		// The sleep is the pause of a poll: River tells nobody when it has written a state.
		for end := time.Now().Add(within); !ok(state) && time.Now().Before(end); time.Sleep(50 * time.Millisecond) {
			job, err := c.JobGet(t.Context(), inserted.Job.ID)
			must(t, err)
			state = job.State
		}
	}
	await(time.Minute, func(s rivertype.JobState) bool { return s != "" && s != rivertype.JobStateAvailable })
	await(within, func(s rivertype.JobState) bool { return s == rivertype.JobStateRetryable })
	return state
}
