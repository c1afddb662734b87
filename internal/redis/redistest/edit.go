package redistest

import (
	"crypto/sha1"
	"encoding/hex"
	"fmt"
	"strings"
	"sync"

	"github.com/redis/go-redis/v9"
)

// Stopped is part of the error of a call whose script was stopped.
const Stopped = "stopped at"

// Stop returns a hook for a client of its own: the n-th write fails, from 1 on, of each script that
// has the marker in its text. Further writes succeed. The stop sets the key mark, unless that is
// empty: a script may go on after a write that failed.
func Stop(marker string, n int, mark string) redis.Hook {
	return Rewrite(func(text string) string {
		if strings.Contains(text, marker) {
			return fmt.Sprintf(stopped, n, mark) + text
		}
		return text
	})
}

// Edit returns a hook for a client of its own that replaces a part of each script that has it.
func Edit(old, text string) redis.Hook {
	return Rewrite(func(script string) string { return strings.Replace(script, old, text, 1) })
}

// An editor changes scripts on their way to the server.
type editor struct {
	edit func(text string) string

	mu    sync.Mutex
	names map[string]string // by the name that the script has unchanged
}

// Rewrite returns a hook for all clients of one server that edits each script.
func Rewrite(edit func(script string) string) redis.Hook {
	e := &editor{edit: edit, names: make(map[string]string)}
	return OnCommand(func(cmd redis.Cmder, send func() error) error {
		args := cmd.Args()
		switch cmd.Name() {
		case "script":
			args[2] = e.changed(fmt.Sprint(args[2]))
		case "eval":
			args[1] = e.changed(fmt.Sprint(args[1]))
		case "evalsha":
			args[1] = e.name(fmt.Sprint(args[1]))
		}
		return send()
	})
}

// stopped is the Lua text in front of a script. A write that fails ends the script, unless it is
// called by pcall.
const stopped = `
local server, stop, mark, writes = redis, %d, '%s', 0
local reads = {TIME=1, TYPE=1, EXISTS=1, ZSCORE=1, ZRANGE=1, ZRANGEBYSCORE=1, ZREVRANGE=1, ZCOUNT=1, ZCARD=1, HGET=1, HMGET=1, HGETALL=1,
  HLEN=1, HSTRLEN=1, HEXISTS=1, HRANDFIELD=1, LRANGE=1, LLEN=1, LINDEX=1, LPOS=1, PTTL=1, PUBLISH=1}
local function marked()
  if mark ~= '' then
    server.call('SET', mark, '1')
  end
end
local redis = {error_reply = server.error_reply, sha1hex = server.sha1hex, REDIS_VERSION_NUM = server.REDIS_VERSION_NUM}
function redis.call(command, ...)
  if not reads[command] then
    writes = writes + 1
    if writes == stop then
      marked()
      error('stopped at ' .. command, 0)
    end
  end
  return server.call(command, ...)
end
function redis.pcall(command, ...)
  if not reads[command] then
    writes = writes + 1
    if writes == stop then
      marked()
      return {err = 'ERR stopped at ' .. command}
    end
  end
  return server.pcall(command, ...)
end
`

func (e *editor) changed(text string) string {
	e.mu.Lock()
	defer e.mu.Unlock()
	changed := e.edit(text)
	e.names[shaOf(text)] = shaOf(changed)
	return changed
}

// name returns the changed script's name. The server learns it when the changed script is first
// sent.
func (e *editor) name(sha string) string {
	e.mu.Lock()
	defer e.mu.Unlock()
	if name, ok := e.names[sha]; ok {
		return name
	}
	return shaOf(sha)
}

func shaOf(text string) string {
	sum := sha1.Sum([]byte(text))
	return hex.EncodeToString(sum[:])
}
