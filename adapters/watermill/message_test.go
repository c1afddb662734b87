package watermill_test

import (
	"errors"
	"maps"
	"testing"

	"github.com/ThreeDotsLabs/watermill/message"

	"github.com/delayq/delayq"
	adapter "github.com/delayq/delayq/adapters/watermill"
	"github.com/delayq/delayq/backend"
	"github.com/delayq/delayq/memory"
)

// UUID, payload and metadata arrive as they were published, whatever bytes are in them, on topics
// of any name.
func TestAnyBytes(t *testing.T) {
	onEachStore(t, func(t *testing.T, b backend.Backend) {
		topic := topicOf(t) + "orders/created {1} é\xff"
		pub, sub := pair(t, b)
		want := message.NewMessage("a\x00b", []byte{0, 0xff, '\n'})
		for _, s := range []string{"", "%", "%41", "a b", "é", "\x00", "\xff", "delayq-", "delayq-id", "_ok.-~", "id", "100%"} {
			want.Metadata.Set(s, "value of "+s)
		}
		must(t, pub.Publish(topic, want))
		messages, err := sub.Subscribe(t.Context(), topic)
		must(t, err)
		got := <-messages
		got.Ack()
		if got.UUID != want.UUID || string(got.Payload) != string(want.Payload) || !maps.Equal(got.Metadata, want.Metadata) {
			t.Errorf("got %q %q %q", got.UUID, got.Payload, got.Metadata)
		}
	})
}

// The key of the UUID's header is not free.
func TestReservedKey(t *testing.T) {
	t.Parallel()
	pub, _ := pair(t, memory.New())
	msg := message.NewMessage("1", nil)
	msg.Metadata.Set(adapter.UUIDHeader, "2")
	if err := pub.Publish("topic", msg); !errors.Is(err, delayq.ErrInvalid) {
		t.Errorf("metadata with the key of the UUID: %v", err)
	}
}

// A message that was pushed by delayq itself is one of Watermill's.
func TestMessageOfDelayq(t *testing.T) {
	t.Parallel()
	b := memory.New()
	q, err := delayq.New(t.Context(), "topic", delayq.WithBackend(b))
	must(t, err)
	id, err := q.Push(t.Context(), []byte("body"), delayq.Header("50%", "half"))
	must(t, err)
	_, sub := pair(t, b)
	messages, err := sub.Subscribe(t.Context(), "topic")
	must(t, err)
	msg := <-messages
	msg.Ack()
	if msg.UUID != id || string(msg.Payload) != "body" || msg.Metadata.Get("50%") != "half" {
		t.Errorf("got %q %q %q", msg.UUID, msg.Payload, msg.Metadata)
	}
}

func TestQueueName(t *testing.T) {
	t.Parallel()
	for topic, want := range map[string]string{
		"orders":         "orders",
		"Orders.v1-x_y":  "Orders.v1-x_y",
		"orders:created": "orders:created",
		"orders/created": "orders:2Fcreated",
		"a:2F":           "a:3A2F", // not the queue of "a/"
		"a:2f":           "a:2f",
		"::41":           "::3A41",
		"é":              ":C3:A9",
	} {
		if got := adapter.QueueName(topic); got != want {
			t.Errorf("queue of topic %q: %q, want %q", topic, got, want)
		}
	}
}

// No two topics share a queue: the name can be read back.
func FuzzQueueName(f *testing.F) {
	f.Add("orders:2F/")
	f.Add(":3A:3A")
	f.Fuzz(func(t *testing.T, topic string) {
		name := adapter.QueueName(topic)
		var read []byte
		for i := 0; i < len(name); i++ {
			c := name[i]
			if high, low := digit(name, i+1), digit(name, i+2); c == ':' && high >= 0 && low >= 0 {
				c = byte(high<<4 | low)
				i += 2
			}
			read = append(read, c)
		}
		if string(read) != topic {
			t.Errorf("topic %q has the queue %q, which reads as %q", topic, name, read)
		}
	})
}

// digit is the value of a hexadecimal digit in upper case, or -1.
func digit(s string, i int) int {
	switch {
	case i >= len(s):
		return -1
	case '0' <= s[i] && s[i] <= '9':
		return int(s[i] - '0')
	case 'A' <= s[i] && s[i] <= 'F':
		return int(s[i]-'A') + 10
	}
	return -1
}
