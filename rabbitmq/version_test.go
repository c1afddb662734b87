package rabbitmq

import (
	"strings"
	"testing"

	amqp "github.com/rabbitmq/amqp091-go"

	"github.com/delayq/delayq/backend/admin"
)

// TestBrokersOfOtherVersions judges brokers that the tests have no server of.
func TestBrokersOfOtherVersions(t *testing.T) {
	for _, test := range []struct {
		version  string
		severity admin.Severity
		says     string
	}{
		{"3.9.29", admin.Problem, "too old"},
		{"3.10.8", admin.Note, "a node that is down"},
		{"3.12.4", admin.Note, "a node that is down"},
		{"3.12.5", admin.Note, "unacknowledged"},
		{"4.2.9", admin.Note, "unacknowledged"},
		{"4.3.0", admin.Fine, ""},
		{"5.0.0", admin.Fine, ""},
		{"", admin.Note, "does not tell"},
	} {
		conn := &amqp.Connection{Properties: amqp.Table{"product": "RabbitMQ", "version": test.version}}
		f := examiner{New("amqp://localhost"), conn}.version()[0]
		if f.Severity != test.severity || !strings.Contains(f.Text, test.says) || (f.Severity != admin.Fine && f.Remedy == "" && test.version != "") {
			t.Errorf("%q: %+v, want %v and %q", test.version, f, test.severity, test.says)
		}
	}
}
