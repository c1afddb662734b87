package testenv

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	amqp "github.com/rabbitmq/amqp091-go"
)

func TestRabbitCluster(t *testing.T) {
	heavy(t)
	c := RabbitCluster(t, 3)
	nodes := c.Nodes()
	declare(t, openChannel(t, dialRabbit(t, nodes[0].URL())), "quorum")
	if members := nodes[2].Ctl("list_queues", "--no-table-headers", "members"); strings.Count(members, "delayq") != 3 {
		t.Errorf("the members of the queue are %s", members)
	}
	for _, node := range nodes {
		node.Sync()
	}
	nodes[0].Kill() // the leader of the queue
	publishOnce(t, nodes[1].URL(), "without the first")
	nodes[0].Restart()
	c.AwaitOK()
	nodes[1].Kill()
	publishOnce(t, nodes[0].URL(), "without the second")
	for _, node := range nodes {
		node.Kill()
	}
	c.Restart()
	c.AwaitOK()
	mustHold(t, c.URLs()[2], "without the first", "without the second")
}

// publishOnce repeats messages that the queue rejects while it has no leader. Each try has a
// channel of its own: one that begins without a leader is rejected forever.
func publishOnce(t *testing.T, url, body string) {
	t.Helper()
	conn := dialRabbit(t, url)
	must(t, await("the queue to take a message", func() (bool, error) {
		ch, err := conn.Channel()
		if err != nil {
			return true, err
		}
		return false, errors.Join(tryPublish(ch, body), ch.Close())
	}))
}

func tryPublish(ch *amqp.Channel, body string) error {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	if err := ch.Confirm(false); err != nil {
		return err
	}
	confirm, err := ch.PublishWithDeferredConfirm("", "quorum", true, false, amqp.Publishing{DeliveryMode: amqp.Persistent, Body: []byte(body)})
	if err != nil {
		return err
	}
	acked, err := confirm.WaitContext(ctx)
	if err == nil && !acked {
		err = errors.New("refused")
	}
	return err
}

// mustHold checks that the confirmed messages are there. There may be others: a message may have
// been stored although it was rejected.
func mustHold(t *testing.T, url string, bodies ...string) {
	t.Helper()
	ch := openChannel(t, dialRabbit(t, url))
	missing := map[string]bool{}
	for _, body := range bodies {
		missing[body] = true
	}
	must(t, await("all confirmed messages", func() (bool, error) {
		d, ok, err := ch.Get("quorum", true)
		if ok {
			delete(missing, string(d.Body))
		}
		if err == nil && len(missing) > 0 {
			err = fmt.Errorf("missing %v", missing)
		}
		return errors.Is(err, amqp.ErrClosed), err
	}))
}
