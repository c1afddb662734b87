package rabbitmq

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"maps"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"

	"github.com/delayq/delayq/backend/admin"
)

var _ admin.Examiner = (*Backend)(nil)

// Examine is as in admin.Examiner. It looks at the broker's version, the user's permissions, the
// types of queues, alarms and undeliverable messages. It declares queues of its own and deletes
// them. It asks the management API for policies, if it can reach it: see [Management].
func (b *Backend) Examine(ctx context.Context) (x admin.Examination, err error) {
	err = b.withConnection(ctx, func(conn *amqp.Connection) error {
		e := examiner{b, conn}
		x.Findings = append(e.version(), e.queueTypes()...)
		x.Findings = append(x.Findings, e.policies(ctx)...)
		if e.b.deadLetters() {
			x.Findings = append(x.Findings, afterCrash)
		}
		x.Findings = append(x.Findings, e.undeliverable(), clock, e.alarm(ctx)) // last: a blocked connection does nothing more
		return ctx.Err()
	})
	return x, err
}

var clock = admin.Finding{
	Severity: admin.Note, About: "clock", Text: "a broker does not report its clock. Each message carries its due time, and a worker keeps an early message until then, by the worker's clock",
	Remedy: "run NTP on every machine that pushes or works",
}

// deadLetters reports whether messages wait in quorum queues that dead-letter them.
func (b *Backend) deadLetters() bool { return !b.classic && !b.plugin }

var afterCrash = admin.Finding{
	Severity: admin.Note, About: "after a crash", Text: "messages that the broker was passing on when it crashed come when it tries again: 180 s later by default, twice that at worst. " +
		"A broker does not tell how this is set",
	Remedy: "write in advanced.config: [{rabbit, [{dead_letter_worker_publisher_confirm_timeout, 10000}]}]. It must be longer than any queue takes to confirm, or messages double",
}

// An examiner looks at a broker over a connection of its own.
type examiner struct {
	b    *Backend
	conn *amqp.Connection
}

// version judges the broker's version.
func (e examiner) version() []admin.Finding {
	version, _ := e.conn.Properties["version"].(string)
	product, _ := e.conn.Properties["product"].(string)
	f := admin.Finding{About: "version", Text: product + " " + version}
	switch {
	case version == "":
		f.Severity, f.Text = admin.Note, "the broker does not tell its version"
	case e.b.classic:
	case olderThan(version, 3, 10, 0):
		f.Severity, f.Text = admin.Problem, f.Text+" is too old: its quorum queues cannot pass messages on at least once"
		f.Remedy = "upgrade to 3.10 or newer"
	case olderThan(version, 3, 12, 5):
		f.Severity, f.Text = admin.Note, f.Text+": on a cluster, a node that is down can hold messages up until it is back"
		f.Remedy = "on a cluster, upgrade to 4.3 or newer, and to 3.12.5 at least; docs/rabbitmq.md says what to do until then"
	case olderThan(version, 4, 3, 0):
		f.Severity, f.Text = admin.Note, f.Text+": on a cluster, the unacknowledged messages of a worker whose node was lost can stay away until other nodes lead"
		f.Remedy = "on a cluster, upgrade to 4.3 or newer, or move the leaders when a node that was lost is back, as docs/rabbitmq.md says"
	}
	return []admin.Finding{f}
}

func olderThan(version string, major, minor, patch int) bool {
	var a, b, c int
	_, _ = fmt.Sscanf(version, "%d.%d.%d", &a, &b, &c) // missing numbers count as 0
	switch {
	case a != major:
		return a < major
	case b != minor:
		return b < minor
	default:
		return c < patch
	}
}

// queueTypes declares queues of the types that the backend needs.
func (e examiner) queueTypes() (fs []admin.Finding) {
	name := e.b.names.queue("examine-" + rand.Text())
	if e.b.classic {
		fs = append(fs, e.probe("queues", name, expiring(nil), "classic queues can be declared",
			"allow the user to configure "+e.b.names.prefix+".*"))
		return append(fs, admin.Finding{
			Severity: admin.Warning, About: "classic", Text: "classic queues lose messages on their way from level to level when the broker crashes",
			Remedy: "leave classic=true out",
		})
	}
	fs = append(fs, e.probe("quorum queues", name, expiring(keepingArgs(false)), "they can be declared",
		"allow the user to configure "+e.b.names.prefix+".*, and enable the feature flag quorum_queue: rabbitmqctl enable_feature_flag all"))
	if fs[0].Severity != admin.Fine {
		return fs
	}
	return append(fs, e.probe("dead-lettering", name+".stream", amqp.Table{"x-queue-type": "stream"},
		"the feature flag stream_queue is on, which dead-lettering at least once requires",
		"enable the feature flag stream_queue, without which a broker that crashes loses messages on their way: rabbitmqctl enable_feature_flag all"))
}

// expiring adds an expiry, in case probe cannot delete the queue.
func expiring(args amqp.Table) amqp.Table {
	all := amqp.Table{"x-expires": time.Minute.Milliseconds()}
	maps.Copy(all, args)
	return all
}

// probe declares a queue and deletes it.
func (e examiner) probe(about, queue string, args amqp.Table, success, remedy string) admin.Finding {
	ch, err := e.conn.Channel()
	if err == nil {
		defer func() { _ = ch.Close() }() // the broker has closed it if it refused
		err = declareQueue(ch, queue, args)
	}
	if err == nil {
		_, err = ch.QueueDelete(queue, false, false, false)
	}
	if err != nil {
		return admin.Finding{Severity: admin.Problem, About: about, Text: err.Error(), Remedy: remedy}
	}
	return admin.Finding{About: about, Text: success}
}

// undeliverable counts the messages that had no queue.
func (e examiner) undeliverable() admin.Finding {
	const about = "undeliverable"
	name := e.b.names.undeliverable()
	switch n, err := length(e.conn, name); {
	case err != nil:
		return admin.Finding{Severity: admin.Warning, About: about, Text: err.Error()}
	case n > 0:
		return admin.Finding{
			Severity: admin.Warning, About: about, Text: fmt.Sprintf("%d messages in %s: their queue did not exist when they were due", n, name),
			Remedy: "the end of a message's routing key names its queue, with / for each dot. Open that queue, move the messages there with a shovel, or delete them",
		}
	default:
		return admin.Finding{About: about, Text: "no messages in " + name}
	}
}

// alarmWithin bounds how long the broker may take to confirm a message.
const alarmWithin = 3 * time.Second

// alarm publishes a message to a queue that does not exist: a broker in an alarm tells only
// publishers.
func (e examiner) alarm(ctx context.Context) admin.Finding {
	ctx, cancel := context.WithTimeout(ctx, alarmWithin)
	defer cancel()
	f := admin.Finding{About: "alarms", Text: "the broker takes messages"}
	reason, err := e.blocked(ctx)
	switch {
	case reason != "":
		f.Severity, f.Text = admin.Problem, "the broker takes no messages: "+reason
		f.Remedy = "give the broker memory or disk space, or drain its queues; pushes wait until then"
	case err != nil:
		f.Severity, f.Text = admin.Problem, fmt.Sprintf("the broker does not confirm a message: %v", err)
		f.Remedy = "allow the user to write to amq.default, as dead letters need it, and see the broker's log"
	}
	return f
}

func (e examiner) blocked(ctx context.Context) (reason string, err error) {
	blocked := e.conn.NotifyBlocked(make(chan amqp.Blocking, 16))
	ch, err := e.conn.Channel()
	if err == nil {
		err = ch.Confirm(false)
	}
	if err != nil {
		return "", explain("opening a channel", err)
	}
	closed := ch.NotifyClose(make(chan *amqp.Error, 1))
	for range 2 { // in an alarm it may confirm the first, which has it block the connection
		confirmed, err := ch.PublishWithDeferredConfirm("", e.b.names.queue("examine-"+rand.Text()), false, false, amqp.Publishing{})
		if err != nil {
			return "", explain("publishing", err)
		}
		select {
		case b := <-blocked:
			return b.Reason, nil
		case <-confirmed.Done():
			if confirmed.Acked() {
				continue
			}
			if err := closeReason(closed); err != nil {
				return "", explain("publishing", err)
			}
			return "", errors.New("the broker refused it")
		case <-ctx.Done():
			return "", ctx.Err()
		}
	}
	return "", nil
}
