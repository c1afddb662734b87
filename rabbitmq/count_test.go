package rabbitmq_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/delayq/delayq/backend"
	"github.com/delayq/delayq/internal/testenv"
)

// tellQueue suspends or resumes the process of a queue. A suspended one replies to nothing, as on a broker
// without processor time.
func tellQueue(server *testenv.RabbitServer, vhost, queue, what string) {
	server.Eval(fmt.Sprintf(`{ok, Q} = rabbit_amqqueue:lookup(rabbit_misc:r(<<"%s">>, queue, <<"%s">>)), sys:%s(amqqueue:get_pid(Q)).`, vhost, queue, what))
}

// TestCountsOfABusyQueue has the broker reply with zeros to all who count the messages of a queue, as it
// does where the queue's process takes long. Each call waits for the true number.
func TestCountsOfABusyQueue(t *testing.T) {
	t.Parallel()
	server, vhost := sharedVhost(t)
	ctx := deadline(t, patience)
	b := newBackend(t, server.VhostURL(vhost), few)
	q, ch := openOn(t, b, "busy"), channel(t, server.VhostURL(vhost))
	makeDead(ctx, t, q, 2)
	await(t, "the end of the subscriptions", func() bool { return consumers(t, ch, "busy") == 0 })
	must(t, q.Schedule(ctx, message("ready", 0))...)
	await(t, "the message", func() bool { return ready(t, ch, "delayq.v1.q.busy") == 1 })
	for what, c := range map[string]struct {
		queue string
		call  func() error
	}{
		"Stats": {"delayq.v1.q.busy", func() error {
			st, err := q.Stats(ctx)
			if err == nil && st.Ready != 1 {
				err = fmt.Errorf("%d ready messages", st.Ready)
			}
			return err
		}},
		"Remains": {"delayq.v1.q.busy", func() error {
			left, err := b.Remains(ctx, "busy")
			if err == nil && len(left) != 2 {
				err = fmt.Errorf("what remains is %q", left)
			}
			return err
		}},
		"ListDead": {"delayq.v1.dead.busy", func() error {
			ls, _, err := q.ListDead(ctx, "", 10)
			if err == nil && len(ls) == 0 {
				err = errors.New("no dead letters")
			}
			return err
		}},
		"DeleteDead": {"delayq.v1.dead.busy", func() error { return q.DeleteDead(ctx, []string{"dead-0"})[0] }},
	} {
		tellQueue(server, vhost, c.queue, "suspend")
		await(t, "false zeros", func() bool {
			q, err := ch.QueueDeclarePassive(c.queue, true, false, false, false, nil)
			must(t, err)
			return q.Messages == 0
		})
		done := make(chan error, 1)
		go func() { done <- c.call() }()
		select {
		case err := <-done:
			t.Errorf("%s did not wait: %v", what, err)
			done <- nil
		case <-time.After(time.Second):
		}
		tellQueue(server, vhost, c.queue, "resume")
		if err := <-done; err != nil {
			t.Errorf("%s: %v", what, err)
		}
	}
}

// TestDeadLettersOfABrokenReader has another program hold a dead letter, as a reader does whose
// connection broke, until the broker notices. Calls for that letter wait until it is back.
func TestDeadLettersOfABrokenReader(t *testing.T) {
	t.Parallel()
	url := shared(t)
	ctx := deadline(t, patience)
	q := open(t, url)
	for what, call := range map[string]func(context.Context, backend.Queue) error{
		"Redrive":    func(ctx context.Context, q backend.Queue) error { return q.Redrive(ctx, []string{"dead-0"})[0] },
		"DeleteDead": func(ctx context.Context, q backend.Queue) error { return q.DeleteDead(ctx, []string{"dead-0"})[0] },
	} {
		makeDead(ctx, t, q, 1)
		reader := connection(t, url)
		ch, err := reader.Channel()
		must(t, err)
		must(t, ch.Qos(1, 0, false))
		name := "delayq.v1.dead." + queueOf(t)
		letters, err := ch.Consume(name, "", false, false, false, false, nil)
		must(t, err)
		<-letters
		done := make(chan error, 1)
		go func() { done <- call(ctx, q) }()
		select {
		case err := <-done:
			t.Errorf("%s did not wait: %v", what, err)
			done <- err
		case <-time.After(300 * time.Millisecond):
		}
		must(t, reader.Close())
		must(t, <-done)
		if what == "Redrive" {
			drain(ctx, t, q, 1)
		}
	}
}
