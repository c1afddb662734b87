package rabbitmq

import (
	"encoding/json"
	"testing"
)

// TestFullQueues has queues as the management API describes them. One refuses messages only if a
// policy has a bound and says so.
func TestFullQueues(t *testing.T) {
	for text, want := range map[string]struct{ refuses, full bool }{
		`{"effective_policy_definition":[],"messages_ready":9}`:                                                                       {},
		`{"effective_policy_definition":{"overflow":"reject-publish"},"messages_ready":9}`:                                            {},
		`{"effective_policy_definition":{"overflow":"drop-head","max-length":3},"messages_ready":9}`:                                  {},
		`{"effective_policy_definition":{"overflow":"reject-publish","max-length":3}}`:                                                {refuses: true},
		`{"effective_policy_definition":{"overflow":"reject-publish","max-length":3},"messages_ready":2}`:                             {refuses: true},
		`{"effective_policy_definition":{"overflow":"reject-publish-dlx","max-length":3},"messages_ready":3}`:                         {true, true},
		`{"effective_policy_definition":{"overflow":"reject-publish","max-length-bytes":30},"message_bytes_ready":30}`:                {true, true},
		`{"effective_policy_definition":{"overflow":"reject-publish","max-length-bytes":30,"max-length":9},"message_bytes_ready":30}`: {true, true},
	} {
		var q queueInfo
		if err := json.Unmarshal([]byte(text), &q); err != nil {
			t.Fatal(err)
		}
		if q.policy().refuses() != want.refuses || q.full() != want.full || (findingFor("q", "overflow", q.policy()) != "") != want.refuses {
			t.Errorf("%s: refuses %v, full %v", text, q.policy().refuses(), q.full())
		}
	}
}
