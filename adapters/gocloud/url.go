package gocloud

import (
	"context"
	"fmt"
	"net/url"
	"strings"

	"gocloud.dev/pubsub"

	"github.com/delayq/delayq"
)

func init() {
	pubsub.DefaultURLMux().RegisterTopic(Scheme, &URLOpener{})
	pubsub.DefaultURLMux().RegisterSubscription(Scheme, &URLOpener{})
}

// Scheme is the URL scheme under which this package registers a [URLOpener] on
// pubsub.DefaultURLMux.
const Scheme = "delayq"

// URLOpener opens URLs of delayq.Open with "delayq:" before them, such as
// "delayq:zsetpoll://localhost:6379/orders". Their parameters are those of the backend's package,
// which must be imported. Shutdown closes the connection that the URL has opened.
type URLOpener struct {
	// Options are those of each queue, such as delayq.WithLease and delayq.WithLogger.
	Options []delayq.Option

	TopicOptions        TopicOptions
	SubscriptionOptions SubscriptionOptions
}

// OpenTopicURL opens a topic.
func (o *URLOpener) OpenTopicURL(ctx context.Context, u *url.URL) (*pubsub.Topic, error) {
	q, err := o.open(ctx, u)
	if err != nil {
		return nil, fmt.Errorf("open topic: %w", err)
	}
	return openTopic(q, true, &o.TopicOptions), nil
}

// OpenSubscriptionURL opens a subscription.
func (o *URLOpener) OpenSubscriptionURL(ctx context.Context, u *url.URL) (*pubsub.Subscription, error) {
	q, err := o.open(ctx, u)
	if err != nil {
		return nil, fmt.Errorf("open subscription: %w", err)
	}
	return openSubscription(q, true, &o.SubscriptionOptions), nil
}

func (o *URLOpener) open(ctx context.Context, u *url.URL) (delayq.Queue, error) {
	return delayq.Open(ctx, strings.TrimPrefix(u.String(), u.Scheme+":"), o.Options...)
}
