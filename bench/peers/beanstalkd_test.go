package peers

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"net"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/beanstalkd/go-beanstalk"

	"github.com/delayq/delayq"
	"github.com/delayq/delayq/bench/internal/load"
	"github.com/delayq/delayq/internal/testenv"
)

func lacksBeanstalkd() error {
	_, err := testenv.FindBeanstalkd()
	return err
}

// beanstalkdSettings are settings that its documentation offers. Delays are whole seconds from the
// moment of the put; go-beanstalk cuts them, so that jobs are up to a second early.
type beanstalkdSettings struct {
	binlog testenv.Binlog
	// producers share a connection and do not wait for one another's replies; a batch is one write
	pipelined bool
	roundUp   bool // delays, so that no job is early, and all are up to a second late
}

const (
	producers = 256
	batchers  = 8
	timeToRun = time.Minute
)

type beanstalkdSystem struct {
	*testenv.BeanstalkdServer
	beanstalkdSettings
	shared  *beanstalk.Conn      // by producers that pipeline, and for calls outside the load
	free    chan *beanstalk.Conn // of producers that have one each
	batches chan net.Conn        // of batches that are one write
}

func openBeanstalkd(set beanstalkdSettings) func(testing.TB) system {
	return func(tb testing.TB) system {
		tb.Helper()
		s := &beanstalkdSystem{BeanstalkdServer: testenv.Beanstalkd(tb, set.binlog), beanstalkdSettings: set}
		s.shared = s.dial(tb)
		if set.pipelined {
			s.batches = pool(batchers, func() net.Conn { return s.dialRaw(tb) })
		} else {
			s.free = pool(producers, func() *beanstalk.Conn { return s.dial(tb) })
		}
		return s
	}
}

func pool[T any](n int, dial func() T) chan T {
	free := make(chan T, n)
	for range n {
		free <- dial()
	}
	return free
}

func (s *beanstalkdSystem) dialRaw(tb testing.TB) net.Conn {
	tb.Helper()
	conn, err := net.Dial("tcp", s.Addr())
	load.Must(tb, err)
	tb.Cleanup(func() { load.Must(tb, conn.Close()) })
	return conn
}

func (s *beanstalkdSystem) dial(tb testing.TB) *beanstalk.Conn {
	tb.Helper()
	conn, err := beanstalk.Dial("tcp", s.Addr())
	load.Must(tb, err)
	tb.Cleanup(func() { _ = conn.Close() }) // a worker's is closed already
	return conn
}

func (s *beanstalkdSystem) push(_ context.Context, m delayq.Message) error {
	_, err := s.put(m)
	return err
}

func (s *beanstalkdSystem) put(m delayq.Message) (uint64, error) {
	if s.pipelined {
		return s.shared.Put(m.Body, 0, s.delay(m), timeToRun)
	}
	conn := <-s.free
	defer func() { s.free <- conn }()
	return conn.Put(m.Body, 0, s.delay(m), timeToRun)
}

func (s *beanstalkdSystem) delay(m delayq.Message) time.Duration {
	delay := max(time.Until(m.Due), 0)
	if s.roundUp {
		delay += time.Second - 1
	}
	return delay.Truncate(time.Second)
}

// pushAll has no batches to use, unless it speaks the protocol by itself.
func (s *beanstalkdSystem) pushAll(ctx context.Context, ms []delayq.Message) error {
	if !s.pipelined {
		return oneByOne(ctx, s, ms)
	}
	conn := <-s.batches
	defer func() { s.batches <- conn }()
	var puts bytes.Buffer
	for _, m := range ms {
		delay, limit := int(s.delay(m).Seconds()), int(timeToRun.Seconds())
		_, _ = fmt.Fprintf(&puts, "put 0 %d %d %d\r\n%s\r\n", delay, limit, len(m.Body), m.Body)
	}
	if _, err := conn.Write(puts.Bytes()); err != nil {
		return fmt.Errorf("putting jobs: %w", err)
	}
	replies := bufio.NewReader(conn)
	for range ms {
		line, err := replies.ReadString('\n')
		switch {
		case err != nil:
			return fmt.Errorf("putting jobs: %w", err)
		case !strings.HasPrefix(line, "INSERTED "):
			return fmt.Errorf("putting jobs: the reply is %q", line)
		}
	}
	return nil
}

func oneByOne(ctx context.Context, s system, ms []delayq.Message) error {
	for _, m := range ms {
		if err := s.push(ctx, m); err != nil {
			return err
		}
	}
	return nil
}

func (s *beanstalkdSystem) pushToCancel(_ context.Context, m delayq.Message) (func(context.Context) error, error) {
	id, err := s.put(m)
	return func(context.Context) error {
		conn := <-s.free
		defer func() { s.free <- conn }()
		return conn.Delete(id)
	}, err
}

func (s *beanstalkdSystem) consume(tb testing.TB, handle func(body []byte)) (stop func()) {
	tb.Helper()
	var stopped atomic.Bool
	var all sync.WaitGroup
	conns := make([]*beanstalk.Conn, load.Workers)
	for i := range conns {
		conns[i] = s.dial(tb)
		all.Go(func() {
			if err := work(conns[i], handle); err != nil && !stopped.Load() {
				tb.Errorf("a worker of beanstalkd: %v", err)
			}
		})
	}
	return func() {
		stopped.Store(true)
		for _, conn := range conns {
			_ = conn.Close() // which is how a waiting worker gets it
		}
		all.Wait()
	}
}

func work(conn *beanstalk.Conn, handle func(body []byte)) error {
	for {
		id, body, err := conn.Reserve(time.Hour)
		if err != nil {
			return fmt.Errorf("reserving a job: %w", err)
		}
		handle(body)
		if err := conn.Delete(id); err != nil {
			return fmt.Errorf("deleting a job: %w", err)
		}
	}
}

func (s *beanstalkdSystem) left(context.Context) (n int64, err error) {
	stats, err := s.shared.Stats()
	if err != nil {
		return 0, fmt.Errorf("counting jobs: %w", err)
	}
	for _, state := range []string{"ready", "delayed", "reserved", "buried"} {
		jobs, err := strconv.ParseInt(stats["current-jobs-"+state], 10, 64)
		if err != nil {
			return 0, fmt.Errorf("counting jobs: %w", err)
		}
		n += jobs
	}
	return n, nil
}

func (s *beanstalkdSystem) weigh(tb testing.TB) weight {
	tb.Helper()
	w := weight{memory: resident(tb, s.Pid())}
	if s.binlog != testenv.NoBinlog {
		w.disk = filesIn(tb, s.Dir())
	}
	return w
}

// spent is the processor time of the server so far.
func (s *beanstalkdSystem) spent(tb testing.TB) (d time.Duration) {
	tb.Helper()
	stats, err := s.shared.Stats()
	load.Must(tb, err)
	for _, name := range []string{"rusage-utime", "rusage-stime"} {
		seconds, err := strconv.ParseFloat(stats[name], 64)
		load.Must(tb, err)
		d += time.Duration(seconds * float64(time.Second))
	}
	return d
}
