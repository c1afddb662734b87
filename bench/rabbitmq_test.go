package bench

import (
	"testing"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"

	"github.com/delayq/delayq"
	"github.com/delayq/delayq/backend"
	"github.com/delayq/delayq/bench/internal/load"
	"github.com/delayq/delayq/internal/testenv"
	"github.com/delayq/delayq/rabbitmq"
)

// The benchmarks of the files rabbitmq_*_test.go put the backend beside what a program does by hand
// with the same client library on the same broker, in turns. They need a rabbitmq-server on the
// PATH, or Docker.
//
//	go test -run '^$' -bench Rabbit -benchtime 1x -timeout 30m ./bench
//
// Metrics begin with the side, go or raw; go/raw is the share of the raw rate that the backend
// reaches. Rates are medians of the turns.

// ownVhost is the URL of an empty virtual host on the broker that all benchmarks share.
func ownVhost(tb testing.TB) string {
	tb.Helper()
	server := testenv.SharedRabbitMQ(tb)
	return server.VhostURL(server.Vhost(tb))
}

func openRabbit(tb testing.TB) backend.Backend { return rabbitmq.New(ownVhost(tb)) }

func twoRabbit(tb testing.TB) (one, other backend.Backend) {
	url := ownVhost(tb)
	return rabbitmq.New(url), rabbitmq.New(url)
}

// onRabbit opens the queue on a broker.
func onRabbit(b *testing.B, url string, opts ...rabbitmq.Option) delayq.Queue {
	b.Helper()
	store := rabbitmq.New(url, opts...)
	b.Cleanup(func() { load.Must(b, store.Close()) })
	return open(b, store, "bench")
}

// A raw program publishes and consumes on connections of their own, as it should.
type raw struct {
	publishing, consuming *amqp.Channel
	deliveries            <-chan amqp.Delivery
}

func newRaw(b *testing.B, url string) *raw {
	b.Helper()
	r := &raw{publishing: rawChannel(b, url), consuming: rawChannel(b, url)}
	load.Must(b, r.publishing.Confirm(false))
	returned := r.publishing.NotifyReturn(make(chan amqp.Return, 1))
	go func() {
		for m := range returned {
			b.Errorf("the broker returned a message for %s: %s", m.RoutingKey, m.ReplyText)
		}
	}()
	return r
}

// subscribe begins to consume, with up to that many messages unacknowledged.
func (r *raw) subscribe(queue string, unacked int) (err error) {
	if err = r.consuming.Qos(unacked, 0, false); err == nil {
		r.deliveries, err = r.consuming.Consume(queue, "", false, false, false, false, nil)
	}
	return err
}

func rawChannel(b *testing.B, url string) *amqp.Channel {
	b.Helper()
	conn, err := amqp.Dial(url)
	load.Must(b, err)
	b.Cleanup(func() { load.Must(b, conn.Close()) })
	ch, err := conn.Channel()
	load.Must(b, err)
	return ch
}

// declare declares a queue, and returns its name.
func (r *raw) declare(b *testing.B, name string, args amqp.Table) string {
	b.Helper()
	_, err := r.publishing.QueueDeclare(name, true, false, false, false, args)
	load.Must(b, err)
	return name
}

// waiting are the arguments that the backend gives the queues in which messages wait.
func waiting(ttl time.Duration, to string) amqp.Table {
	return amqp.Table{
		"x-queue-type": "quorum", "x-message-ttl": ttl.Milliseconds(),
		"x-dead-letter-exchange": "", "x-dead-letter-routing-key": to,
		"x-dead-letter-strategy": "at-least-once", "x-overflow": "reject-publish",
	}
}

// quorum are the arguments of a queue that is consumed.
func quorum() amqp.Table { return amqp.Table{"x-queue-type": "quorum"} }

// rawWindow is how many messages are under way without a confirmation.
const rawWindow = 2000

// publish returns when the broker has confirmed all messages. Of these up to window are under way.
func (r *raw) publish(b *testing.B, queue string, n, window int, message func(i int) amqp.Publishing) {
	b.Helper()
	under := make(chan *amqp.DeferredConfirmation, window)
	acked := make(chan int, 1)
	go func() { acked <- countAcked(under) }()
	for i := range n {
		c, err := r.publishing.PublishWithDeferredConfirm("", queue, true, false, message(i))
		load.Must(b, err)
		under <- c
	}
	close(under)
	if got := <-acked; got != n {
		b.Fatalf("the broker took %d messages of %d", got, n)
	}
}

func countAcked(under <-chan *amqp.DeferredConfirmation) (n int) {
	for c := range under {
		if c.Wait() {
			n++
		}
	}
	return n
}

// bare is a message that has nothing but a body.
func bare(body []byte) amqp.Publishing {
	return amqp.Publishing{DeliveryMode: amqp.Persistent, Body: body}
}

// reportRace reports the rate of each side, and its share of the one that it is measured against.
func reportRace(b *testing.B, r *load.Race, against string) {
	b.Helper()
	for _, name := range r.Sides {
		b.ReportMetric(r.Median(name), name+"-msgs/s")
		if name != against {
			b.ReportMetric(r.Median(name)/r.Median(against), name+"/"+against)
		}
	}
	load.OnePass(b)
}
