package rabbitmq

import (
	"testing"

	amqp "github.com/rabbitmq/amqp091-go"
)

// TestAttemptsOfRedelivered reads messages that were delivered before. A quorum queue that names no
// number of deliveries has counted none.
func TestAttemptsOfRedelivered(t *testing.T) {
	t.Parallel()
	counted := amqp.Table{countHeader: int64(2)}
	for what, c := range map[string]struct {
		headers amqp.Table
		classic bool
		want    int
	}{
		"quorum": {nil, false, 0}, "classic": {nil, true, 1},
		"quorum, counted": {counted, false, 2}, "with a count of another queue": {counted, true, 2},
	} {
		d := &amqp.Delivery{Redelivered: true, Headers: c.headers}
		if got := readRecord(d, c.classic).attempts; got != c.want {
			t.Errorf("%s: %d attempts, want %d", what, got, c.want)
		}
	}
}
