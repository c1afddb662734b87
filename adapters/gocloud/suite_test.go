package gocloud

import (
	"context"
	"errors"
	"testing"

	"gocloud.dev/pubsub"
	"gocloud.dev/pubsub/driver"
	"gocloud.dev/pubsub/drivertest"

	"github.com/delayq/delayq"
	"github.com/delayq/delayq/backend"
)

// gocloud's own suite decides whether this is a driver.
func TestConformance(t *testing.T) {
	onEachStore(t, func(t *testing.T, b backend.Backend) {
		maker := func(_ context.Context, t *testing.T) (drivertest.Harness, error) { return &harness{t, b}, nil }
		drivertest.RunConformanceTests(t, maker, []drivertest.AsTest{asTest{}})
	})
}

type harness struct {
	t *testing.T
	b backend.Backend
}

func (h *harness) CreateTopic(context.Context, string) (driver.Topic, func(), error) {
	return &topic{queue{newQueue(h.t, h.b), false}}, func() {}, nil
}

func (h *harness) CreateSubscription(_ context.Context, dt driver.Topic, _ string) (driver.Subscription, func(), error) {
	return newSubscription(dt.(*topic).queue, nil), func() {}, nil
}

func (h *harness) MakeNonexistentTopic(context.Context) (driver.Topic, error) {
	return &topic{queue{missing{newQueue(h.t, h.b)}, false}}, nil
}

func (h *harness) MakeNonexistentSubscription(context.Context) (driver.Subscription, func(), error) {
	return newSubscription(queue{missing{newQueue(h.t, h.b)}, false}, nil), func() {}, nil
}

func (h *harness) Close()                              {}
func (h *harness) MaxBatchSizes() (int, int)           { return delayq.MaxBatch, delayq.MaxBatch }
func (h *harness) SupportsMultipleSubscriptions() bool { return false }

// missing stands for a queue that does not exist: every queue of a store opens.
type missing struct{ delayq.Queue }

var errMissing = &delayq.OpError{Op: "find", Queue: "missing", Err: delayq.ErrNotFound}

func (missing) PushBatch(context.Context, []delayq.Message) ([]string, error) {
	return nil, errMissing
}

func (missing) ReceiveBatch(context.Context, int) ([]*delayq.Delivery, error) {
	return nil, errMissing
}

// asTest checks the types that the package's comment lists.
type asTest struct{}

func (asTest) Name() string { return "types of delayq" }

func found(ok bool) error {
	if !ok {
		return errors.New("As returns false")
	}
	return nil
}

func (asTest) TopicCheck(t *pubsub.Topic) error {
	var q delayq.Queue
	return found(t.As(&q) && q != nil)
}

func (asTest) SubscriptionCheck(s *pubsub.Subscription) error {
	var q delayq.Queue
	return found(s.As(&q) && q != nil)
}

func (asTest) TopicErrorCheck(t *pubsub.Topic, err error) error {
	var e *delayq.OpError
	return found(t.ErrorAs(err, &e) && e.Op == "find")
}

func (asTest) SubscriptionErrorCheck(s *pubsub.Subscription, err error) error {
	var e *delayq.OpError
	return found(s.ErrorAs(err, &e) && e.Op == "find")
}

func (asTest) MessageCheck(m *pubsub.Message) error {
	var d *delayq.Delivery
	return found(m.As(&d) && d.Attempt == 1 && d.Headers["from"] == "BeforeSend")
}

func (asTest) BeforeSend(as func(any) bool) error {
	var m *delayq.Message
	if !as(&m) {
		return found(false)
	}
	m.Headers = map[string]string{"from": "BeforeSend"}
	return nil
}

func (asTest) AfterSend(as func(any) bool) error {
	var m *delayq.Message
	return found(as(&m) && m.ID != "")
}
