package rabbitmq_test

import (
	"strings"
	"testing"

	"github.com/delayq/delayq/internal/testenv"
)

// TestHeartbeat asks the broker for the heartbeat of a handle's connections. It decides how long
// the broker waits for a worker that stands still, as docs/operating.md says.
func TestHeartbeat(t *testing.T) {
	testenv.In(t, testenv.All)
	server, vhost := sharedVhost(t)
	open(t, server.VhostURL(vhost))
	connections := 0
	for line := range strings.Lines(server.Ctl("list_connections", "-q", "--no-table-headers", "vhost", "timeout")) {
		if f := strings.Fields(line); len(f) == 2 && f[0] == vhost {
			if connections++; f[1] != "10" {
				t.Errorf("a connection has a heartbeat of %s s, want 10", f[1])
			}
		}
	}
	if connections != 2 {
		t.Errorf("%d connections, want one to publish and one to consume", connections)
	}
}
