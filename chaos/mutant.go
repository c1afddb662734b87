package chaos

import (
	"context"
	"crypto/sha1"
	"encoding/hex"
	"net"
	"strings"
	"sync"

	"github.com/redis/go-redis/v9"
)

// An Edit runs New wherever Old stands in a script.
type Edit struct{ Old, New string }

// A Mutant changes Lua scripts on their way from a backend to the server, by whichever of its edits finds its place. It is a hook of the
// client, so that the backend itself stays as it is. It is safe for concurrent use, on several clients of one server.
type Mutant struct {
	Name    string
	Backend string
	Edits   []Edit
	Finds   string   // the rule that a run has to find broken
	Faults  []string // without which it does not show

	mu      sync.Mutex
	changed map[string]string // names of scripts, as they were and as they are
}

var _ redis.Hook = (*Mutant)(nil)

// Applied counts the scripts that were changed.
func (m *Mutant) Applied() int {
	m.mu.Lock()
	defer m.mu.Unlock()
	return len(m.changed)
}

// DialHook changes nothing.
func (*Mutant) DialHook(next redis.DialHook) redis.DialHook {
	return func(ctx context.Context, network, addr string) (net.Conn, error) { return next(ctx, network, addr) }
}

// ProcessHook changes scripts.
func (m *Mutant) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		m.change(cmd.Args())
		return next(ctx, cmd)
	}
}

// ProcessPipelineHook changes scripts.
func (m *Mutant) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return func(ctx context.Context, cmds []redis.Cmder) error {
		for _, cmd := range cmds {
			m.change(cmd.Args())
		}
		return next(ctx, cmds)
	}
}

// change works on the arguments in place, which the client sends as they are then.
func (m *Mutant) change(args []any) {
	if len(args) < 2 {
		return
	}
	command, _ := args[0].(string)
	switch strings.ToLower(command) {
	case "evalsha":
		if sha, ok := args[1].(string); ok {
			args[1] = m.known(sha)
		}
	case "eval":
		args[1] = m.rewrite(args[1])
	case "script":
		if len(args) > 2 && args[1] == "load" {
			args[2] = m.rewrite(args[2])
		}
	}
}

func (m *Mutant) known(sha string) string {
	m.mu.Lock()
	defer m.mu.Unlock()
	if other, ok := m.changed[sha]; ok {
		return other
	}
	return sha
}

func (m *Mutant) rewrite(arg any) any {
	text, ok := arg.(string)
	if !ok {
		return arg
	}
	changed := text
	for _, e := range m.Edits {
		changed = strings.ReplaceAll(changed, e.Old, e.New)
	}
	if changed == text {
		return arg
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.changed == nil {
		m.changed = make(map[string]string)
	}
	m.changed[nameOf(text)] = nameOf(changed)
	return changed
}

// nameOf is what Redis calls a script by.
func nameOf(text string) string {
	sum := sha1.Sum([]byte(text))
	return hex.EncodeToString(sum[:])
}
