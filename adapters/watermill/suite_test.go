package watermill_test

import (
	"testing"
	"time"

	"github.com/ThreeDotsLabs/watermill/message"
	"github.com/ThreeDotsLabs/watermill/pubsub/tests"

	"github.com/delayq/delayq"
	"github.com/delayq/delayq/backend"
	"github.com/delayq/delayq/internal/testenv"
)

// suiteOptions have nacked messages come again at once, however often, and messages that the suite
// never acks given back within its 15 s.
var suiteOptions = []delayq.ConsumeOption{delayq.Retry(delayq.Delays{0}), delayq.MaxAttempts(0), delayq.Drain(time.Second)}

// Watermill's own suite decides whether this is a Pub/Sub. The package's comment lists the features
// that are not claimed.
func TestPubSub(t *testing.T) {
	onEachStore(t, func(t *testing.T, b backend.Backend) {
		ordered := b.Traits().Supports(delayq.Ordering)
		features := tests.Features{
			Persistent: true, GuaranteedOrder: ordered, GuaranteedOrderWithSingleSubscriber: ordered,
			ForceShort: !testenv.Runs(t, testenv.All), // with a hundredth of the messages
		}
		tests.TestPubSub(t, features, func(t *testing.T) (message.Publisher, message.Subscriber) {
			return pair(t, b, suiteOptions...)
		}, nil)
	})
}
