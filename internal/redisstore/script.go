package redisstore

import (
	"context"
	"crypto/sha1"
	"embed"
	"encoding/hex"
	"errors"
	"fmt"
	"net"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"
)

//go:embed lua/*.lua
var sources embed.FS

// A script is a Lua file behind the prelude that all share.
type script struct {
	name, text, sha string
}

func load(name string) *script {
	text := read("prelude") + read(name)
	sum := sha1.Sum([]byte(text)) // Redis names scripts by it
	return &script{name: name, text: text, sha: hex.EncodeToString(sum[:])}
}

func read(name string) string {
	text, err := sources.ReadFile("lua/" + name + ".lua")
	if err != nil {
		panic(err) // it is embedded
	}
	return string(text)
}

var (
	scheduleScript   = load("schedule")
	claimScript      = load("claim")
	expireScript     = load("expire")
	lookScript       = load("look")
	moveScript       = load("move")
	takeScript       = load("take")
	ackScript        = load("ack")
	nackScript       = load("nack")
	extendScript     = load("extend")
	buryScript       = load("bury")
	cancelScript     = load("cancel")
	rescheduleScript = load("reschedule")
	statsScript      = load("stats")
	listDeadScript   = load("list_dead")
	redriveScript    = load("redrive")
	deleteDeadScript = load("delete_dead")
)

// once is a command that the client library must not repeat by itself: a reply that is lost leaves open
// whether the script has run, and the second run has to know that it is one.
type once struct{ *redis.Cmd }

func (once) NoRetry() bool { return true }

const (
	tries      = 3
	retryPause = 10 * time.Millisecond
)

// run runs a script, up to three times when replies are lost.
func (s *Store) run(ctx context.Context, sc *script, args ...any) (any, error) {
	return s.repeat(ctx, sc, false, args)
}

// repeat is run; again says that what the script does may have been done already.
func (s *Store) repeat(ctx context.Context, sc *script, again bool, args []any) (any, error) {
	began := time.Now()
	var err error
	for try := range tries {
		if try > 0 && !pause(ctx, retryPause<<try) {
			break
		}
		var age time.Duration
		if again {
			age = max(time.Since(began), time.Microsecond)
		}
		var reply any
		if reply, err = s.runOnce(ctx, sc, age, args); !unknown(ctx, err) {
			return reply, wrap(sc, err)
		}
		again = again || !unsent(err)
	}
	return nil, wrap(sc, err)
}

// unsent reports whether there was no connection to send anything on.
func unsent(err error) bool {
	var op *net.OpError
	return errors.Is(err, redis.ErrPoolTimeout) || errors.As(err, &op) && op.Op == "dial"
}

func wrap(sc *script, err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("script %s: %w", sc.name, translate(err))
}

// unknown reports whether the script may have run though there is no reply.
func unknown(ctx context.Context, err error) bool {
	var reply redis.Error
	return err != nil && ctx.Err() == nil && !errors.As(err, &reply) && !errors.Is(err, redis.ErrClosed)
}

func pause(ctx context.Context, d time.Duration) bool {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return true
	case <-ctx.Done():
		return false
	}
}

// runOnce runs a script whose first try was sent that long ago, 0 for none.
func (s *Store) runOnce(ctx context.Context, sc *script, age time.Duration, args []any) (any, error) {
	reply, err := s.eval(ctx, "evalsha", sc.sha, age, args)
	if !redis.HasErrorPrefix(err, "NOSCRIPT") {
		return reply, err
	}
	if err := s.client.ScriptLoad(ctx, sc.text).Err(); err != nil {
		return nil, fmt.Errorf("loading: %w", err)
	}
	reply, err = s.eval(ctx, "evalsha", sc.sha, age, args)
	if !redis.HasErrorPrefix(err, "NOSCRIPT") {
		return reply, err
	}
	return s.eval(ctx, "eval", sc.text, age, args) // it was forgotten in between
}

func (s *Store) eval(ctx context.Context, command, sc string, age time.Duration, args []any) (any, error) {
	all := make([]any, 0, 3+len(s.keys.list)+4+len(args))
	all = append(all, command, sc, len(s.keys.list))
	for _, k := range s.keys.list {
		all = append(all, k)
	}
	all = append(all, s.now(), delayArg(age), s.keys.channel, s.trigger())
	cmd := once{redis.NewCmd(ctx, append(all, args...)...)}
	cmd.SetFirstKeyPos(3)
	_ = s.client.Process(ctx, cmd)
	return cmd.Result()
}

func flag(b bool) string {
	if b {
		return "1"
	}
	return "0"
}

// trigger is what the keys begin with whose expiry tells that a message is due. An injected clock's time
// is not that of expiries.
func (s *Store) trigger() string {
	if !s.triggers || s.clock != nil {
		return ""
	}
	return s.keys.prefix + triggerKey
}

// now is the injected clock's time in microseconds, or nothing for the server's own.
func (s *Store) now() any {
	if s.clock == nil {
		return ""
	}
	return s.clock.Now().UnixMicro()
}

// translate gives the errors of the server that a caller may want to tell apart their sentinels.
func translate(err error) error {
	if strings.HasPrefix(err.Error(), "OOM ") || strings.Contains(err.Error(), "command not allowed when used memory") {
		return fmt.Errorf("%w: %w", errFull, err)
	}
	if errors.Is(err, redis.ErrClosed) {
		return fmt.Errorf("%w: %w", errClosed, err)
	}
	return err
}
