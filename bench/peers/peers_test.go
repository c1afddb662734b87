// Package peers measures delayq beside other queues, each as its own documentation sets it up and
// once more tuned for speed and lateness. It is a module of its own, so that nobody who uses delayq
// downloads them.
//
//	cd bench/peers && go test -run '^$' -bench . -benchtime 1x -timeout 30m
//
// The arguments -args -sides zsetpoll,nats restrict a run to some sides.
//
// The sides take turns, round by round; after the last one each has a line with the median of its
// rounds, or the better of two. All servers run on this machine and share its processors. Redis has
// no persistence, beanstalkd has none unless the side says binlog or synced, NATS writes files without fsync,
// and Postgres syncs each commit unless it is the tuned one. A benchmark fails when delayq breaks a
// promise, an early, a lost or a repeated message, and never because of a rate or of what a peer
// does; the goals are in the comments.
//
// What the lines say is measured before they are printed: -count repeats the lines and not the
// measurement, and ns/op and a long -benchtime mean nothing.
package peers

import (
	"context"
	"flag"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/delayq/delayq"
	"github.com/delayq/delayq/bench/internal/load"
	"github.com/delayq/delayq/internal/testenv"
)

var only = flag.String("sides", "", "measure only these `sides`, separated by commas")

// A peer is a queue to measure. A new one joins by an entry in peers.
type peer struct {
	name string

	// open returns an empty queue of its own; it cleans up when tb ends.
	open func(tb testing.TB) system

	// needs returns what the machine lacks for it, except Redis.
	needs func() error

	// in are the loads that it takes part in.
	in loads

	// ours are the sides of this library: they promise never to be early, and each message once
	// where nothing breaks.
	ours bool

	// slow ones are left out of a short run, since they wait for seconds before they begin, or show
	// nothing new.
	slow bool

	// oneByOne peers have no batches.
	oneByOne bool

	// coarse peers count whole seconds from a push, so that their messages cannot be due at one
	// instant. Their workers come at the instant instead, when all messages have been due for up to
	// a second.
	coarse bool

	// looks is how often a peer looks for due messages, where that is seconds.
	looks time.Duration

	// most is how many messages a drain or a push has at most, where the others' would take
	// minutes; 0 for theirs.
	most int
}

type loads int

const (
	pushes loads = 1 << iota
	drains
	delays // the load of lateness
	depths
	cancels
	idles

	everything = pushes | drains | delays | depths | cancels | idles
)

var peers = []peer{
	{name: "afterfunc", open: openAfterFunc, in: drains | delays | depths | cancels},

	{name: "memory", open: openMemory, ours: true, in: everything},
	{name: "zsetpoll", open: openZsetpoll, ours: true, in: everything},
	{name: "keyspace", open: openKeyspace, ours: true, in: everything},
	{name: "redisson", open: openRedisson, ours: true, in: everything},
	{name: "sqlite", open: openSQLite, ours: true, in: pushes | drains | delays},
	{name: "serve", open: openServe, ours: true, in: pushes | drains | delays},
	{name: "postgres", open: openPostgres, needs: lacksPostgres, ours: true, in: pushes | drains | delays},
	{name: "rabbitmq", open: openRabbit, ours: true, in: drains | delays, slow: true, most: 10_000},

	{
		name: "asynq", open: openAsynq(asDocumented),
		in: everything &^ depths, slow: true, oneByOne: true, looks: 5 * time.Second,
	},
	{name: "asynq-tuned", open: openAsynq(tuned), in: everything, oneByOne: true},
	{name: "asynq-tuned-x4", open: openAsynq(tunedServers), in: drains, slow: true, most: 50_000},

	{
		name: "beanstalkd", open: openBeanstalkd(beanstalkdSettings{}), needs: lacksBeanstalkd,
		in: everything, oneByOne: true, coarse: true,
	},
	{
		name: "beanstalkd-tuned", open: openBeanstalkd(beanstalkdSettings{pipelined: true, roundUp: true}), needs: lacksBeanstalkd,
		in: pushes | delays, coarse: true,
	},
	{
		name: "beanstalkd-binlog", open: openBeanstalkd(beanstalkdSettings{binlog: testenv.LateBinlog}), needs: lacksBeanstalkd,
		in: pushes | drains | depths, oneByOne: true, coarse: true, slow: true,
	},
	{
		name: "beanstalkd-synced", open: openBeanstalkd(beanstalkdSettings{binlog: testenv.SyncedBinlog}), needs: lacksBeanstalkd,
		in: pushes | drains, oneByOne: true, coarse: true, slow: true, most: 10_000,
	},

	{name: "nats", open: openNATS(false), in: everything &^ depths},
	{name: "nats-tuned", open: openNATS(true), in: everything},

	{
		name: "river", open: openRiver(riverDefaults), needs: lacksPostgres,
		in: everything &^ depths, slow: true, looks: 5 * time.Second, most: 1000,
	},
	{name: "river-tuned", open: openRiver(riverTuned), needs: lacksPostgres, in: everything, most: 10_000},

	{name: "gue", open: openGue(gueSettings{}), needs: lacksPostgres, in: pushes | drains | delays, slow: true, looks: 5 * time.Second, most: 10_000},
	{name: "gue-tuned", open: openGue(gueTuned), needs: lacksPostgres, in: pushes | drains | delays, most: 10_000},

	{name: "goqite", open: openGoqite, in: pushes | drains | delays, most: 10_000},
	{name: "backlite", open: openBacklite, in: pushes | drains | delays, most: 2000},

	{
		name: "redisson-java", open: openRedissonJava, needs: lacksJava,
		in: pushes | drains | delays | depths | cancels, oneByOne: true, slow: true, most: 10_000,
	},
}

// A system is a peer that runs.
type system interface {
	// push hands over one message, as the peer takes single ones, and returns when the store has
	// it.
	push(ctx context.Context, m delayq.Message) error

	// pushAll hands over up to 1,000 messages in as few calls as the peer has for that.
	pushAll(ctx context.Context, ms []delayq.Message) error

	// consume has 32 workers call handle, until stop. That returns when all of them are idle.
	consume(tb testing.TB, handle func(body []byte)) (stop func())

	// left counts the messages that are not acknowledged.
	left(ctx context.Context) (int64, error)
}

// A clearer is a system that can delete all messages while nothing consumes. Others are opened
// anew.
type clearer interface{ clear(tb testing.TB) }

// A canceller is a system that takes a message back.
type canceller interface {
	pushToCancel(ctx context.Context, m delayq.Message) (cancel func(context.Context) error, err error)
}

// A weigher is a system that reports the memory it uses.
type weigher interface{ weigh(tb testing.TB) weight }

// weight is in bytes: of memory, where the server or this process keeps messages there, and of
// files.
type weight struct{ memory, disk int64 }

// A foreigner makes and counts its messages in a process of its own, since calls from here would
// cost more than the measured work.
type foreigner interface {
	pushMany(tb testing.TB, n, threads int)
	drainMany(tb testing.TB, n int, due time.Time) (_ burst, inTime bool)
	lateMany(tb testing.TB) load.Outcome
	cancelSome(tb testing.TB, pending, n int) time.Duration // per message
}

// takePart opens the peers that a run of this length has time for, side by side, as far as the load
// concerns them.
func takePart(b *testing.B, load loads) (cs []*contestant) {
	b.Helper()
	for _, p := range peersIn(b, load) {
		c := p.enter(b)
		b.Cleanup(func() { c.leave() })
		cs = append(cs, c)
	}
	return cs
}

// peersIn gives those that the machine has no server for a line that is skipped, or that fails
// where it is required.
func peersIn(b *testing.B, load loads) (found []peer) {
	b.Helper()
	for _, p := range peers {
		switch {
		case p.in&load == 0 || p.slow && testing.Short() || !p.asked():
		case p.needs != nil && p.needs() != nil:
			b.Run(p.name, func(b *testing.B) { testenv.Require(b, p.needs()) })
		default:
			found = append(found, p)
		}
	}
	return found
}

func (p peer) asked() bool { return *only == "" || slices.Contains(strings.Split(*only, ","), p.name) }
