package chaos_test

import (
	"strings"
	"testing"
	"time"

	"github.com/delayq/delayq/backend"
	"github.com/delayq/delayq/chaos"
	"github.com/delayq/delayq/internal/testenv"
)

// TestWhereInRabbits has one message wait and one in hand: a run that finds them there at its end has to name both.
func TestWhereInRabbits(t *testing.T) {
	s := testenv.RabbitMQ(&soft{TB: t}, testenv.PrivateRabbit())
	b, err := chaos.Endpoint{Backend: "rabbitmq", Addr: s.URL()}.Open(t.Context())
	must(t, err)
	defer func() { _ = b.Close() }()
	q, err := b.Open(t.Context(), queueName, quiet())
	must(t, err)
	for _, err := range q.Schedule(t.Context(), []backend.Message{{ID: "waits", Delay: 0x30000000 * time.Millisecond}, {ID: "in hand"}}) {
		must(t, err)
	}
	_, err = q.Receive(t.Context(), 1, time.Minute)
	must(t, err)
	told := whereInRabbits("/", s)(t)
	for _, part := range []string{
		"delayq.v1.w6.3", "num_ready_messages => 1", "{worker,<", "delayq.v1.q.chaos", "num_checked_out => 1", "cancelled,1,{lives,true}", "\t0\t1\t0\t0\n", "wait for the next queue, on " + s.Addr() + ":\n  []",
	} {
		if !strings.Contains(told, part) {
			t.Errorf("it does not tell of %q:\n%s", part, told)
		}
	}
	if strings.Contains(told, "does not tell") || strings.Contains(told, "w5.") {
		t.Errorf("it tells too little, or too much:\n%s", told)
	}
}
