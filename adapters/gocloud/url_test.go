package gocloud

import (
	"errors"
	"strings"
	"testing"

	"gocloud.dev/pubsub"

	"github.com/delayq/delayq"
	"github.com/delayq/delayq/internal/testenv"
)

func TestURL(t *testing.T) {
	t.Parallel()
	onRedis := strings.Replace(testenv.SharedRedis(t).URL(), "redis://", "zsetpoll://", 1)
	base, _, _ := strings.Cut(onRedis, "?")
	if at := strings.LastIndex(base, "/"); at > len("zsetpoll://") {
		base = base[:at]
	}
	for _, url := range []string{"delayq:memory:///url", "pubsub+delayq:memory://store/url", "delayq:" + base + "/url?prefix=gocloud-url&poll=100ms"} {
		topic, err := pubsub.OpenTopic(t.Context(), url)
		must(t, err)
		sub, err := pubsub.OpenSubscription(t.Context(), url)
		must(t, err)
		must(t, topic.Send(t.Context(), &pubsub.Message{Body: []byte(url)}))
		if m := receive(t, sub); string(m.Body) != url {
			t.Errorf("%s: received %q", url, m.Body)
		} else {
			m.Ack()
		}
		must(t, topic.Shutdown(t.Context()))
		must(t, sub.Shutdown(t.Context()))
	}
}

func TestBadURL(t *testing.T) {
	t.Parallel()
	for url, want := range map[string]error{
		"delayq:nothing://host/orders":     delayq.ErrUnknownScheme,
		"delayq:memory:///orders?colour=1": delayq.ErrInvalid,
		"delayq://orders":                  delayq.ErrUnknownScheme,
	} {
		if _, err := pubsub.OpenTopic(t.Context(), url); !errors.Is(err, want) {
			t.Errorf("topic %s: %v, want %v", url, err, want)
		}
		if _, err := pubsub.OpenSubscription(t.Context(), url); !errors.Is(err, want) {
			t.Errorf("subscription %s: %v, want %v", url, err, want)
		}
	}
}
