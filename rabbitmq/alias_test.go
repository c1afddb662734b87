package rabbitmq

import (
	"net/url"
	"testing"
)

// An AMQP URI with a queue is the same as this package's own URL.
func TestFromAMQP(t *testing.T) {
	t.Parallel()
	for uri, want := range map[string]string{
		"amqp://host":                   "rabbitmq://host/%2F/a%2Fb",
		"amqp://host/":                  "rabbitmq://host/%2F/a%2Fb",
		"amqp://host/%2F":               "rabbitmq://host/%2F/a%2Fb",
		"amqp://me:p%40@host:5673/v":    "rabbitmq://me:p%40@host:5673/v/a%2Fb",
		"amqps://host/v%2Fw?grain=16ms": "rabbitmqs://host/v%2Fw/a%2Fb?grain=16ms",
		"amqps://host:5671/v?hosts=b,c": "rabbitmqs://host:5671/v/a%2Fb?hosts=b,c",
	} {
		u, err := url.Parse(uri)
		if err != nil {
			t.Fatal(err)
		}
		got, err := fromAMQP(u, "a/b")
		if err != nil || got.String() != want {
			t.Errorf("%s: got %v and %v, want %s", uri, got, err, want)
			continue
		}
		if _, queue, err := splitPath(got); err != nil || queue != "a/b" {
			t.Errorf("%s: queue %q, error %v", uri, queue, err)
		}
	}
}
