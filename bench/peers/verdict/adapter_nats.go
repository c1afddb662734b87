package verdict

import (
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/nats-io/nuid"

	"github.com/delayq/delayq/backend"
)

// natsBackend has a stream for each queue: what waits has a subject of its own, what is due is a work queue with a pull consumer.
type natsBackend struct {
	handles
	conn *nats.Conn

	// header writes the header with the due time by hand, to the nanosecond. The client's option cuts it to seconds.
	header bool
}

// ackWait is how long the server waits for an acknowledgement. Workers report progress for longer.
const ackWait = time.Second

// Traits declare that ids do not deduplicate, which MsgID does by time and not by message, that a delivery counts whether or not
// anybody had it, and that the server looks at what is due every 250 ms.
func (b *natsBackend) Traits() backend.Traits {
	t := backend.Traits{
		Name: "nats", Sweep: 250 * time.Millisecond,
		Lacks: backend.Lacking(
			backend.Rescheduling, backend.Counting, backend.Redriving, backend.Peeking, backend.Getting, backend.Purging, backend.Pausing,
			backend.Ordering, backend.Deduplicating, backend.ChangingHeaders, backend.UniqueWindows, backend.ExactAttempts, backend.Transactions,
		),
	}
	if !b.header {
		t.Resolution = time.Second
	}
	return t
}

func (b *natsBackend) Open(ctx context.Context, name string, _ backend.Options) (backend.Queue, error) {
	return b.add(ctx, func() (backend.Queue, error) { return b.open(ctx, hex.EncodeToString([]byte(name))) })
}

func (b *natsBackend) open(ctx context.Context, name string) (*natsQueue, error) {
	js, err := jetstream.New(b.conn)
	if err != nil {
		return nil, err
	}
	q := &natsQueue{closer: newCloser(), backend: b, js: js, name: name, hands: make(map[backend.Token]*natsHand)}
	q.stream, err = js.CreateOrUpdateStream(ctx, jetstream.StreamConfig{
		Name: name, Subjects: []string{"wait." + name + ".>", "due." + name}, AllowMsgSchedules: true,
		Retention: jetstream.WorkQueuePolicy, Storage: jetstream.FileStorage,
	})
	if err != nil {
		return nil, fmt.Errorf("making a stream: %w", err)
	}
	q.workers, err = q.stream.CreateOrUpdateConsumer(ctx, jetstream.ConsumerConfig{
		Durable: "workers", AckPolicy: jetstream.AckExplicitPolicy, AckWait: ackWait, FilterSubject: "due." + name,
	})
	if err != nil {
		return nil, fmt.Errorf("making a consumer: %w", err)
	}
	return q, nil
}

type natsQueue struct {
	backend.Unsupported
	closer
	backend *natsBackend
	js      jetstream.JetStream
	name    string
	stream  jetstream.Stream
	workers jetstream.Consumer

	mu    sync.Mutex
	hands map[backend.Token]*natsHand
	last  uint64
}

type natsHand struct {
	id  string
	msg jetstream.Msg
	*keeper
}

var _ backend.Queue = (*natsQueue)(nil)

// idHeader carries our id, in hex, since values lose spaces at their ends.
const idHeader = "Id"

func (q *natsQueue) Schedule(ctx context.Context, ms []backend.Message) []error {
	return each(ctx, &q.closer, ms, func(m backend.Message) error {
		msg, opts := q.message(m)
		_, err := q.js.PublishMsg(ctx, msg, opts...)
		return err
	})
}

// message is published to where it is due, when that is now, else to wait under a subject of its own.
func (q *natsQueue) message(m backend.Message) (*nats.Msg, []jetstream.PublishOpt) {
	id := hex.EncodeToString([]byte(m.ID))
	msg := nats.NewMsg("due." + q.name)
	msg.Data = m.Body
	for k, v := range m.Headers {
		msg.Header.Set(k, v)
	}
	msg.Header.Set(idHeader, id)
	due := m.Due
	if due.IsZero() {
		if m.Delay == 0 {
			return msg, nil
		}
		due = time.Now().Add(m.Delay)
	}
	target := msg.Subject
	msg.Subject = fmt.Sprintf("wait.%s.%s.%s", q.name, id, nuid.Next())
	if !q.backend.header {
		return msg, []jetstream.PublishOpt{jetstream.WithScheduleAt(due), jetstream.WithScheduleTarget(target)}
	}
	msg.Header.Set(jetstream.ScheduleHeader, "@at "+due.UTC().Format(time.RFC3339Nano))
	msg.Header.Set(jetstream.ScheduleTargetHeader, target)
	return msg, nil
}

// Receive fetches one message, and more if they are there.
func (q *natsQueue) Receive(ctx context.Context, limit int, lease time.Duration) (ds []backend.Delivery, err error) {
	if err := q.ready(ctx); err != nil {
		return nil, err
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	go func() {
		select {
		case <-q.shut:
			cancel()
		case <-ctx.Done():
		}
	}()
	for {
		msg, err := q.workers.Next(jetstream.FetchContext(ctx))
		if err == nil {
			ds = append(ds, q.take(msg, lease))
			break
		}
		if err := q.ready(ctx); err != nil {
			return nil, err
		}
		if end, ok := ctx.Deadline(); ok && !time.Now().Before(end) {
			<-ctx.Done() // the client has seen it first
			return nil, ctx.Err()
		}
		if !errors.Is(err, nats.ErrTimeout) && !errors.Is(err, jetstream.ErrNoHeartbeat) {
			return nil, err
		}
	}
	if limit == 1 {
		return ds, nil
	}
	more, err := q.workers.FetchNoWait(limit - 1)
	if err != nil {
		return ds, nil // one has been taken
	}
	for msg := range more.Messages() {
		ds = append(ds, q.take(msg, lease))
	}
	return ds, nil
}

func (q *natsQueue) take(msg jetstream.Msg, lease time.Duration) backend.Delivery {
	d := backend.Delivery{Body: msg.Data(), Until: time.Now().Add(max(lease, ackWait)), Attempt: 1}
	for k, vs := range msg.Headers() {
		switch k {
		case idHeader:
			id, _ := hex.DecodeString(vs[0])
			d.ID = string(id)
		case jetstream.SchedulerHeader, jetstream.ScheduleNextHeader: // the server's own
		default:
			if d.Headers == nil {
				d.Headers = make(map[string]string)
			}
			d.Headers[k] = vs[0]
		}
	}
	if meta, err := msg.Metadata(); err == nil {
		d.Attempt = int(meta.NumDelivered)
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	q.last++
	d.Token = backend.Token{Lo: q.last}
	q.hands[d.Token] = &natsHand{d.ID, msg, keep(ackWait, lease, msg.InProgress)}
	return d
}

func (q *natsQueue) hand(l backend.Lease) *natsHand {
	q.mu.Lock()
	defer q.mu.Unlock()
	if h := q.hands[l.Token]; h != nil && h.id == l.ID {
		return h
	}
	return nil
}

// settle says a word. The server confirms none but the acknowledgement; a flush makes sure that it has the others.
func (q *natsQueue) settle(ctx context.Context, l backend.Lease, say func(jetstream.Msg) error) error {
	h := q.hand(l)
	if h == nil {
		return backend.ErrLeaseLost
	}
	h.stop()
	err := say(h.msg)
	if errors.Is(err, jetstream.ErrMsgAlreadyAckd) {
		return backend.ErrLeaseLost
	}
	if err == nil {
		err = q.flush(ctx)
	}
	return err
}

func (q *natsQueue) flush(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	return q.backend.conn.FlushWithContext(ctx)
}

// Ack waits for the server's confirmation.
func (q *natsQueue) Ack(ctx context.Context, ls []backend.Lease) []error {
	return each(ctx, &q.closer, ls, func(l backend.Lease) error {
		return q.settle(ctx, l, func(m jetstream.Msg) error { return m.DoubleAck(ctx) })
	})
}

// Nack is nak, also for a message that nobody has touched: there is no other word.
func (q *natsQueue) Nack(ctx context.Context, rs []backend.Return) []error {
	return each(ctx, &q.closer, rs, func(r backend.Return) error {
		return q.settle(ctx, r.Lease, func(m jetstream.Msg) error {
			if r.Delay == 0 {
				return m.Nak()
			}
			return m.NakWithDelay(r.Delay)
		})
	})
}

// Dead is term with a reason, which the server tells in an advisory and keeps nowhere.
func (q *natsQueue) Dead(ctx context.Context, bs []backend.DeadLetterRequest) []error {
	return each(ctx, &q.closer, bs, func(b backend.DeadLetterRequest) error {
		return q.settle(ctx, b.Lease, func(m jetstream.Msg) error { return m.TermWithReason(b.Reason) })
	})
}

func (q *natsQueue) Extend(ctx context.Context, ls []backend.Lease, lease time.Duration) ([]time.Time, []error) {
	return extends(ctx, &q.closer, ls, func(l backend.Lease) (end time.Time, err error) {
		h := q.hand(l)
		if h == nil {
			return end, backend.ErrLeaseLost
		}
		if end, err = h.extend(lease); errors.Is(err, jetstream.ErrMsgAlreadyAckd) {
			err = backend.ErrLeaseLost
		}
		return end, err
	})
}

// Cancel purges the subject under which a message waits.
func (q *natsQueue) Cancel(ctx context.Context, ids []string) []error {
	return each(ctx, &q.closer, ids, func(id string) error {
		subject := fmt.Sprintf("wait.%s.%s.*", q.name, hex.EncodeToString([]byte(id)))
		info, err := q.stream.Info(ctx, jetstream.WithSubjectFilter(subject))
		if err != nil {
			return err
		}
		if len(info.State.Subjects) == 0 {
			return backend.ErrNotFound
		}
		return q.stream.Purge(ctx, jetstream.WithPurgeSubject(subject))
	})
}

func (q *natsQueue) Close() error {
	return q.closeOnce(func() error {
		q.mu.Lock()
		defer q.mu.Unlock()
		for _, h := range q.hands {
			h.stop()
		}
		return nil
	})
}
