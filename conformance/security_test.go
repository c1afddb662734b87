package conformance_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/redis/go-redis/v9"

	"github.com/delayq/delayq"
	"github.com/delayq/delayq/backend"
	"github.com/delayq/delayq/backend/admin"
	"github.com/delayq/delayq/internal/redis/redistest"
	"github.com/delayq/delayq/internal/testenv"
	"github.com/delayq/delayq/keyspace"
	"github.com/delayq/delayq/memory"
	"github.com/delayq/delayq/postgres"
	"github.com/delayq/delayq/rabbitmq"
	"github.com/delayq/delayq/redisson"
	"github.com/delayq/delayq/sqlite"
	"github.com/delayq/delayq/zsetpoll"
)

// attacked is how long a test may wait for a store; it only matters when something is broken.
const attacked = 60 * time.Second

var mute = slog.New(slog.DiscardHandler)

func must(t *testing.T, errs ...error) {
	t.Helper()
	if err := errors.Join(errs...); err != nil {
		t.Fatal(err)
	}
}

// A target is a store, and its database of Redis.
type target struct {
	backend backend.Backend
	redis   *redis.Client // nil on other stores
}

// targets are all stores, each empty.
func targets(t *testing.T) map[string]target {
	t.Helper()
	client := testenv.Redis(t, testenv.Private()).Client(t)
	broker := testenv.SharedRabbitMQ(t)
	pool, err := pgxpool.New(t.Context(), testenv.SharedPostgres(t).URL())
	must(t, err)
	t.Cleanup(pool.Close)
	all := map[string]target{
		"memory":   {backend: memory.New()},
		"rabbitmq": {backend: &openedRabbit{Backend: rabbitmq.New(broker.URL())}},
		"sqlite":   {backend: sqlite.New(filepath.Join(t.TempDir(), "delay.db"))},
		"postgres": {backend: postgres.New(pool, postgres.Prefix(fmt.Sprintf("c%d_", prefixes.Add(1))))},
	}
	for name, open := range map[string]func(redis.UniversalClient) backend.Backend{
		"zsetpoll": func(c redis.UniversalClient) backend.Backend { return zsetpoll.New(c) },
		"zsetpoll-arbitrate": func(c redis.UniversalClient) backend.Backend {
			return zsetpoll.New(c, zsetpoll.Claims(zsetpoll.Arbitrate))
		},
		"zsetpoll-mover": func(c redis.UniversalClient) backend.Backend { return zsetpoll.New(c, zsetpoll.Claims(zsetpoll.Mover)) },
		"keyspace":       func(c redis.UniversalClient) backend.Backend { return keyspace.New(c) },
		"redisson": func(c redis.UniversalClient) backend.Backend {
			return redisson.New(c, redisson.WithCodec(redisson.Bytes))
		},
		"redisson-envelope": func(c redis.UniversalClient) backend.Backend {
			return redisson.New(c, redisson.WithCodec(redisson.Envelope))
		},
	} {
		own := redis.NewClient(&redis.Options{Addr: client.Options().Addr, DB: len(all) - 2})
		t.Cleanup(func() { _ = own.Close() })
		all[name] = target{backend: open(own), redis: own}
	}
	for _, each := range all {
		t.Cleanup(func() { must(t, each.backend.Close()) })
	}
	return all
}

func eachTarget(t *testing.T, f func(*testing.T, target)) {
	t.Helper()
	for name, each := range targets(t) {
		t.Run(name, func(t *testing.T) { f(t, each) })
	}
}

func (g target) open(t *testing.T, name string) delayq.Queue {
	t.Helper()
	q, err := delayq.New(t.Context(), name, delayq.WithBackend(g.backend), delayq.WithLogger(mute))
	must(t, err)
	t.Cleanup(func() { must(t, q.Close()) })
	return q
}

// strangeNames returns names with a meaning for a store, its scripts, its protocol or a terminal.
func strangeNames() []string {
	names := []string{
		"", "#", "*", "*.*", "a.#", "..", "../a", "/", "a/b", "{a}", "{", "}", "a}:due", "a}b{c}", "[a-z]*", "a?", `a\*`, "'", `"`, "]]", "%s%n", "$1",
		"' redis.call('FLUSHALL') --", "]] redis.call('FLUSHALL') --[[", "a\r\nFLUSHALL\r\n", "*1\r\n$8\r\nFLUSHALL\r\n", "a\x00", "\x1b[2J", "é", "\xff", "\u202e",
		strings.Repeat("x", backend.MaxName+1),
	}
	for b := range 256 {
		names = append(names, "a"+string([]byte{byte(b)})+"z")
	}
	return names
}

const plainNames = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_.:"

func isPlain(name string) bool {
	return name != "" && len(name) <= backend.MaxName && !strings.ContainsFunc(name, func(r rune) bool { return !strings.ContainsRune(plainNames, r) })
}

// TestStrangeNamesAreRefused pushes names that are not plain, which the library rejects. Redisson
// accepts every name that Java can give a queue.
func TestStrangeNamesAreRefused(t *testing.T) {
	eachTarget(t, func(t *testing.T, g target) {
		for _, name := range strangeNames() {
			if isPlain(name) || g.backend.Traits().AnyName && name != "" && len(name) <= backend.MaxName {
				continue
			}
			_, err := delayq.New(t.Context(), name, delayq.WithBackend(g.backend), delayq.WithLogger(mute))
			if !errors.Is(err, delayq.ErrInvalid) || strings.ContainsAny(err.Error(), "\x00\x1b\r\n") {
				t.Errorf("%q: %v", name, err)
			}
		}
		if g.redis != nil {
			if keys := slices.DeleteFunc(g.redis.Keys(t.Context(), "*").Val(), redistest.Stays); len(keys) > 0 {
				t.Errorf("keys %q", keys)
			}
		}
	})
}

// confusable are pairs of names of which one could be taken for the other, or for a key of the
// other's.
var confusable = [][2]string{
	{"a", "a:due"}, {"a:b", "a.b"}, {"a", "a."}, {"A", "a"}, {"q.x", "x"}, {"dead.q", "q"}, {"l0.1", "l0:1"}, {"undeliverable", "deliver"}, {".", ":"},
	{"trigger:a", "a"}, {"wake", "a:wake"}, {"0", "00"}, {"a-b", "a_b"}, {"..", "."},
}

// foreign are such pairs among the names that Redisson accepts.
var foreign = [][2]string{
	{"a*", "ab"}, {"a?", "ab"}, {"[ab]", "a"}, {"a\x00", "a"}, {"a\r\n", "a"}, {"a b", "a"}, {"*", "a"}, {"#", "a"}, {"a}", "a"}, {"a}b", "a"}, {"a{b}", "ab"}, {"a{", "a"},
	{"\xff", "\xfe"}, {"é", "e"}, {"'", `"`}, {"..", "."}, {"]] redis.call('FLUSHALL')", "]]"}, {"a%00", "a\x00"}, {`a\*`, "a*"}, {"K", "\u212a"},
}

// TestConfusableNames has two queues that must not share messages, counts or keys.
func TestConfusableNames(t *testing.T) {
	eachTarget(t, func(t *testing.T, g target) {
		pairs := confusable
		if g.backend.Traits().AnyName {
			pairs = slices.Concat(pairs, foreign)
		}
		for i, pair := range pairs {
			t.Run(fmt.Sprint(i), func(t *testing.T) { g.mustTellApart(t, pair[0], pair[1]) })
		}
	})
}

func (g target) mustTellApart(t *testing.T, one, other string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), attacked)
	defer cancel()
	q, p := g.open(t, one), g.open(t, other)
	g.mustHaveKeysOf(t, "")
	pushText(t, q, one, time.Hour)
	g.mustHaveKeysOf(t, one)
	pushText(t, q, one, 0)
	pushText(t, p, other, 0)
	for name, queue := range map[string]delayq.Queue{one: q, other: p} {
		d, err := queue.Receive(ctx)
		must(t, err)
		if string(d.Body) != name {
			t.Errorf("%q gets the message of %q", name, d.Body)
		}
		must(t, d.Ack(ctx))
	}
	if p.Supports(delayq.Purging) {
		_, err := p.Purge(ctx)
		must(t, err)
		s, err := q.Stats(ctx)
		must(t, err)
		if s.Scheduled != 1 {
			t.Errorf("%q has %+v after the purge of %q", one, s, other)
		}
		_, err = q.Purge(ctx)
		must(t, err)
		g.mustHaveKeysOf(t, "")
	}
}

func pushText(t *testing.T, q delayq.Queue, text string, delay time.Duration) {
	t.Helper()
	_, err := q.Push(t.Context(), []byte(text), delayq.After(delay))
	must(t, err)
}

// mustHaveKeysOf wants the test's database to have keys of that queue and no others; none for "".
func (g target) mustHaveKeysOf(t *testing.T, name string) {
	t.Helper()
	if g.redis == nil {
		return
	}
	keys, err := g.redis.Keys(t.Context(), "*").Result()
	must(t, err)
	keys = slices.DeleteFunc(keys, redistest.Stays)
	var own []string
	if name != "" {
		own, err = g.backend.(admin.Remover).Remains(t.Context(), name)
		must(t, err)
	}
	for i := range keys {
		keys[i] = "key " + keys[i]
	}
	slices.Sort(keys)
	if !slices.Equal(keys, own) || name != "" && len(own) == 0 {
		t.Errorf("the queue %q has %q; there are %q", name, own, keys)
	}
}

// protocols are bytes with a meaning in a protocol or in a store.
var protocols = []string{
	"", "\x00", "\r\n", "*1\r\n$8\r\nFLUSHALL\r\n", "$-1\r\n", "-ERR\r\n", "]] redis.call('FLUSHALL') --[[", "' .. redis.call('FLUSHALL') .. '", "%s%d%n", "\\", "\"",
	"\xff\xfe", "\xce", "\x01\x00\x00\x00\x00\x00\x00\xce", "AMQP\x00\x00\x09\x01", "\xdddq\x01", "\x04\x3e\x01a", "\x031\xb2", `{"@class":"java.lang.Runtime"}`, "nil", "false", "1e999",
	"\x08\x00\x00\x00\x00\x00\x00\x00\x00\xff\xff\xff\xff\xff\xff\xff\x7f", "a{b}c*?[d]#", "../../etc/passwd", "${jndi:ldap://x/y}", "\u2028\u202e", "\x1b[2J",
}

// TestStrangeContents pushes ids, headers and bodies of such bytes, which must be delivered
// unchanged.
func TestStrangeContents(t *testing.T) {
	eachTarget(t, func(t *testing.T, g target) {
		q := g.open(t, "contents")
		ctx, cancel := context.WithTimeout(t.Context(), attacked)
		defer cancel()
		traits := g.backend.Traits()
		want := make(map[string]delayq.Message)
		for i, text := range protocols {
			m := delayq.Message{Body: []byte(fmt.Sprint(i, text))}
			if traits.Supports(backend.KeepingHeaders) {
				m.Headers = map[string]string{fmt.Sprint("k", i, strings.Map(shownOnly, text)): text}
			}
			if traits.Supports(backend.OwnIDs) {
				m.ID = fmt.Sprint(i, strings.Map(shownOnly, text))
			}
			want[string(m.Body)] = m
			_, err := q.PushBatch(ctx, []delayq.Message{m})
			must(t, err)
		}
		for range protocols {
			d, err := q.Receive(ctx)
			must(t, err)
			m, pushed := want[string(d.Body)]
			delete(want, string(d.Body))
			if !pushed || m.ID != "" && d.ID != m.ID || len(d.Headers) != len(m.Headers) {
				t.Errorf("got %q with the id %q and %d headers", d.Body, d.ID, len(d.Headers))
			}
			for k, v := range m.Headers {
				if d.Headers[k] != v {
					t.Errorf("header %q: got %q, want %q", k, d.Headers[k], v)
				}
			}
			must(t, d.Ack(ctx))
		}
	})
}

// shownOnly removes runes that ids and keys of headers must not have.
func shownOnly(r rune) rune {
	if r < ' ' || r == 0x7f || r == '\ufffd' || r >= 0x80 && r < 0xa0 {
		return -1
	}
	return r
}
