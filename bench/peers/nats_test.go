package peers

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/delayq/delayq"
	"github.com/delayq/delayq/bench/internal/load"
)

const (
	// each message waits under a subject of its own, else it would replace another
	waitSubject = "wait"
	dueSubject  = "due"
)

// natsSystem is JetStream with scheduled messages, in a server that is embedded in this process and
// talked to over TCP: a work queue in files, on which 32 workers take from one pull consumer. The
// server looks for what is due no more than every 250 ms.
//
// The option of nats.go cuts due times to whole seconds, so that messages are up to a second early.
// Tuned, the same header is written by hand, to the nanosecond, and producers share the bookkeeping
// of asynchronous publishes.
type natsSystem struct {
	js     jetstream.JetStream
	stream jetstream.Stream
	dir    string
	tuned  bool
	next   *atomic.Int64
}

func openNATS(tuned bool) func(testing.TB) system {
	return func(tb testing.TB) system {
		tb.Helper()
		s := natsSystem{dir: tb.TempDir(), tuned: tuned, next: new(atomic.Int64)}
		conn, err := nats.Connect(embed(tb, s.dir))
		load.Must(tb, err)
		tb.Cleanup(conn.Close)
		s.js, err = jetstream.New(conn, jetstream.WithPublishAsyncMaxPending(1<<20))
		load.Must(tb, err)
		s.stream, err = s.js.CreateStream(context.Background(), jetstream.StreamConfig{
			Name: "BENCH", Subjects: []string{waitSubject + ".*", dueSubject}, AllowMsgSchedules: true,
			Retention: jetstream.WorkQueuePolicy, Storage: jetstream.FileStorage,
		})
		load.Must(tb, err)
		return s
	}
}

// embed starts a server and returns its URL.
func embed(tb testing.TB, dir string) string {
	tb.Helper()
	s, err := server.NewServer(&server.Options{
		Host: "127.0.0.1", Port: server.RANDOM_PORT, JetStream: true, StoreDir: dir, NoLog: true, NoSigs: true,
	})
	load.Must(tb, err)
	s.Start()
	tb.Cleanup(func() {
		s.Shutdown()
		s.WaitForShutdown()
	})
	if !s.ReadyForConnections(load.Patience) {
		tb.Fatal("the NATS server does not take connections")
	}
	return s.ClientURL()
}

func (s natsSystem) push(ctx context.Context, m delayq.Message) error {
	_, err := s.publish(ctx, m)
	return err
}

// publish waits for the confirmation.
func (s natsSystem) publish(ctx context.Context, m delayq.Message) (*jetstream.PubAck, error) {
	msg, opts := s.scheduled(m)
	if !s.tuned {
		return s.js.PublishMsg(ctx, msg, opts...)
	}
	confirmed, err := s.js.PublishMsgAsync(msg, opts...)
	if err != nil {
		return nil, fmt.Errorf("publishing: %w", err)
	}
	return confirmation(confirmed)
}

func confirmation(f jetstream.PubAckFuture) (*jetstream.PubAck, error) {
	select {
	case ack := <-f.Ok():
		return ack, nil
	case err := <-f.Err():
		return nil, fmt.Errorf("publishing: %w", err)
	}
}

func (s natsSystem) scheduled(m delayq.Message) (*nats.Msg, []jetstream.PublishOpt) {
	msg := nats.NewMsg(fmt.Sprint(waitSubject, ".", s.next.Add(1)))
	msg.Data = m.Body
	if s.tuned {
		msg.Header.Set(jetstream.ScheduleHeader, "@at "+m.Due.UTC().Format(time.RFC3339Nano))
		msg.Header.Set(jetstream.ScheduleTargetHeader, dueSubject)
		return msg, nil
	}
	return msg, []jetstream.PublishOpt{jetstream.WithScheduleAt(m.Due), jetstream.WithScheduleTarget(dueSubject)}
}

// pushAll publishes all and waits for the confirmations, as is advised for many messages.
func (s natsSystem) pushAll(_ context.Context, ms []delayq.Message) error {
	confirmed := make([]jetstream.PubAckFuture, len(ms))
	for i, m := range ms {
		msg, opts := s.scheduled(m)
		var err error
		if confirmed[i], err = s.js.PublishMsgAsync(msg, opts...); err != nil {
			return fmt.Errorf("publishing: %w", err)
		}
	}
	for _, c := range confirmed {
		if _, err := confirmation(c); err != nil {
			return err
		}
	}
	return nil
}

func (s natsSystem) pushToCancel(ctx context.Context, m delayq.Message) (func(context.Context) error, error) {
	ack, err := s.publish(ctx, m)
	if err != nil {
		return nil, err
	}
	return func(ctx context.Context) error { return s.stream.DeleteMsg(ctx, ack.Sequence) }, nil
}

func (s natsSystem) consume(tb testing.TB, handle func(body []byte)) (stop func()) {
	tb.Helper()
	c, err := s.stream.CreateOrUpdateConsumer(context.Background(), jetstream.ConsumerConfig{
		Durable: "workers", AckPolicy: jetstream.AckExplicitPolicy, FilterSubject: dueSubject,
	})
	load.Must(tb, err)
	messages, err := c.Messages()
	load.Must(tb, err)
	var all sync.WaitGroup
	for range load.Workers {
		all.Go(func() {
			if err := workOff(messages, handle); !errors.Is(err, jetstream.ErrMsgIteratorClosed) {
				tb.Errorf("a worker of NATS: %v", err)
			}
		})
	}
	return func() {
		messages.Stop()
		all.Wait()
	}
}

func workOff(messages jetstream.MessagesContext, handle func(body []byte)) error {
	for {
		m, err := messages.Next()
		if err != nil {
			return err
		}
		handle(m.Data())
		if err := m.Ack(); err != nil {
			return err
		}
	}
}

func (s natsSystem) left(ctx context.Context) (int64, error) {
	info, err := s.stream.Info(ctx)
	if err != nil {
		return 0, fmt.Errorf("counting messages: %w", err)
	}
	return int64(info.State.Msgs), nil
}

func (s natsSystem) clear(tb testing.TB) { load.Must(tb, s.stream.Purge(context.Background())) }

func (s natsSystem) weigh(tb testing.TB) weight {
	tb.Helper()
	return weight{memory: heap(), disk: filesIn(tb, s.dir)}
}
