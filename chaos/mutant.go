package chaos

import (
	"context"
	"crypto/sha1"
	"encoding/hex"
	"net"
	"slices"
	"strings"
	"sync"

	"github.com/redis/go-redis/v9"
)

// An Edit runs New wherever Old stands in a script.
type Edit struct{ Old, New string }

// A Mutant changes Lua scripts on their way from a backend to the server, by its edits, each of which has to find its place in some script. It is a hook of the
// client, so that the backend itself stays as it is. It is safe for concurrent use, on several clients of one server.
type Mutant struct {
	Name    string
	Backend string
	Edits   []Edit
	Finds   string   // the rule that a run has to find broken
	Faults  []string // without which it does not show

	mu      sync.Mutex
	changed map[string]string // names of scripts, as they were and as they are
	placed  map[Edit]bool     // edits that have found their place
}

var _ redis.Hook = (*Mutant)(nil)

// Idle are the edits that have found their place in no script: the scripts have become others since.
func (m *Mutant) Idle() []Edit {
	m.mu.Lock()
	defer m.mu.Unlock()
	return slices.DeleteFunc(slices.Clone(m.Edits), func(e Edit) bool { return m.placed[e] })
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
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.changed == nil {
		m.changed, m.placed = make(map[string]string), make(map[Edit]bool)
	}
	changed := text
	for _, e := range m.Edits {
		if strings.Contains(changed, e.Old) {
			changed, m.placed[e] = strings.ReplaceAll(changed, e.Old, e.New), true
		}
	}
	if changed == text {
		return arg
	}
	m.changed[nameOf(text)] = nameOf(changed)
	return changed
}

// nameOf is what Redis calls a script by.
func nameOf(text string) string {
	sum := sha1.Sum([]byte(text))
	return hex.EncodeToString(sum[:])
}
