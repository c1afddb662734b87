package keyspace_test

import (
	"errors"
	"io"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/delayq/delayq/internal/redis/redistest"
	"github.com/delayq/delayq/internal/testenv"
	"github.com/delayq/delayq/keyspace"
)

func TestOpenEnablesNotifications(t *testing.T) {
	t.Parallel()
	client := server(t).Client(t)
	for _, before := range []string{"", "K", "Kg", "KEg$", "AK", "AKE"} {
		must(t, client.ConfigSet(t.Context(), "notify-keyspace-events", before).Err())
		before = flags(t, client)
		b := newBackend(t, client)
		openKnown(t, b, "q", silent)
		must(t, degraded(t, b))
		after := flags(t, client)
		if !strings.Contains(after, "E") || !strings.ContainsAny(after, "xA") {
			t.Errorf("%q became %q, which does not tell of expiries", before, after)
		}
		for _, f := range before {
			if !strings.ContainsRune(after, f) {
				t.Errorf("%q became %q, which lacks %c", before, after, f)
			}
		}
		must(t, b.Close())
	}
}

// Without notifications the sweep finds due messages, and the backend reports it.
func TestNotificationsNotAllowed(t *testing.T) {
	t.Parallel()
	client := server(t, noConfig).Client(t)
	b := newBackend(t, client, keyspace.Sweep(200*time.Millisecond))
	var log redistest.Log
	q := openKnown(t, b, "q", log.Logger())
	openLogging(t, b, "another", log.Logger())
	if err := degraded(t, b); err == nil || !strings.Contains(err.Error(), "notify-keyspace-events") {
		t.Errorf("degraded: %v", err)
	}
	if n := log.Count("level=WARN", "gets no expiries", "remedy=", "Ex", client.Options().Addr); n != 1 {
		t.Errorf("%d warnings of it in:\n%s", n, &log)
	}
	s := sleep(t, client, q)
	push(t, q, "m", 300*time.Millisecond)
	s.woken(t, "m", 500*time.Millisecond+noise)
}

var noConfig = testenv.Directive("rename-command", "CONFIG", "")

// The setting may be there though no client may read it. RESP2 and RESP3 tell of a PING
// differently.
func TestNotificationsBehindARefusal(t *testing.T) {
	t.Parallel()
	srv := server(t, noConfig, testenv.Directive("notify-keyspace-events", "Ex"))
	for _, protocol := range []int{2, 3} {
		client := srv.Client(t, func(o *redis.Options) { o.Protocol = protocol })
		b := newBackend(t, client, keyspace.Sweep(time.Minute))
		var log redistest.Log
		q := openKnown(t, b, "q", log.Logger())
		if err := degraded(t, b); err != nil || log.Count("gets no expiries") > log.Count(unconfirmed) {
			t.Errorf("degraded: %v, log:\n%s", err, &log)
		}
		s := sleep(t, client, q)
		id := numbered("protocol", protocol)
		push(t, q, id, 300*time.Millisecond)
		s.woken(t, id, time.Second+noise)
	}
	left, err := srv.Client(t).Keys(t.Context(), "*probe*").Result()
	must(t, err)
	if len(left) > 0 {
		t.Errorf("left behind: %v", left)
	}
}

// Users may be kept from commands and from channels.
func TestUsersWithoutRights(t *testing.T) {
	t.Parallel()
	srv := server(t)
	admin := srv.Client(t)
	must(t, admin.ConfigSet(t.Context(), "notify-keyspace-events", "Ex").Err())
	for name, tt := range map[string]struct {
		rules       []any
		unconfirmed bool
	}{
		"noconfig":   {[]any{"~*", "&*", "+@all", "-config"}, false},
		"readconfig": {[]any{"~*", "&*", "+@all", "-config", "+config|get"}, false},
		"nochannels": {[]any{"~*", "resetchannels", "&delayq:*", "+@all"}, true},
	} {
		must(t, admin.Do(t.Context(), append([]any{"acl", "setuser", name, "on", "nopass"}, tt.rules...)...).Err())
		b := newBackend(t, srv.Client(t, func(o *redis.Options) { o.Username, o.Password = name, "x" }), keyspace.Sweep(100*time.Millisecond))
		q := openKnown(t, b, name, silent)
		if !tt.unconfirmed {
			must(t, degraded(t, b))
		} else if err := b.Degraded(); err == nil || !strings.Contains(err.Error(), unconfirmed) {
			t.Errorf("%s: degraded: %v; want that the server %s", name, err, unconfirmed)
		}
		push(t, q, "m", 50*time.Millisecond)
		take(t, q, redistest.Patience)
	}
}

// A server forgets a setting that was made while it ran.
func TestRestartEnablesAgain(t *testing.T) {
	t.Parallel()
	srv := server(t, testenv.AOF())
	client := srv.Client(t)
	b := newBackend(t, client, keyspace.Sweep(time.Minute))
	q := open(t, b)
	push(t, q, "before", time.Second)
	srv.Restart()
	await(t, "notifying again", func() bool { return strings.Contains(flags(t, client), "E") })
	take(t, q, time.Second+noise)
	s := sleep(t, client, q)
	push(t, q, "after", 300*time.Millisecond)
	s.woken(t, "after", time.Second+noise)
	must(t, b.Degraded())
}

func TestServerThatComesLater(t *testing.T) {
	t.Parallel()
	srv := server(t)
	client := srv.Client(t)
	srv.Kill()
	b := newBackend(t, client, keyspace.Sweep(time.Minute))
	var log redistest.Log
	begun := time.Now()
	q := openLogging(t, b, "q", log.Logger())
	if took := time.Since(begun); took > 30*time.Second {
		t.Errorf("Open took %v", took)
	}
	openKnown(t, b, "q", log.Logger())
	if err := b.Degraded(); err == nil || log.Count("level=WARN", "gets no expiries") != 1 {
		t.Errorf("degraded: %v, log:\n%s", err, &log)
	}
	srv.Restart()
	await(t, "recovery", func() bool { return b.Degraded() == nil })
	await(t, "the log of it", func() bool { return log.Count("level=INFO", "gets expiries again") == 1 })
	s := sleep(t, client, q)
	push(t, q, "m", 300*time.Millisecond)
	s.woken(t, "m", time.Second+noise)
}

// A server whose reply to the check was lost may not tell of expiries: the backend reports it, and
// checks again soon.
func TestCheckIsLost(t *testing.T) {
	t.Parallel()
	client := server(t).Client(t)
	var broken atomic.Bool
	broken.Store(true)
	client.AddHook(redistest.OnCommand(func(cmd redis.Cmder, send func() error) error {
		if cmd.Name() == "config" && broken.Load() {
			cmd.SetErr(io.EOF)
			return io.EOF
		}
		return send()
	}))
	b := newBackend(t, client)
	openKnown(t, b, "q", silent)
	if err := degraded(t, b); !errors.Is(err, io.EOF) {
		t.Errorf("degraded: %v", err)
	}
	broken.Store(false)
	mended := time.Now()
	await(t, "the next check", func() bool { return b.Degraded() == nil && strings.Contains(flags(t, client), "E") })
	if took := time.Since(mended); took > 30*time.Second {
		t.Errorf("the next check came after %v", took)
	}
}
