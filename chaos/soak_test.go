package chaos

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/ncruces/go-sqlite3"
	"github.com/redis/go-redis/v9"

	"github.com/delayq/delayq/backend"
	"github.com/delayq/delayq/internal/testenv"
)

// soakRate is the number of messages a second.
const soakRate = 2000

// A soakTarget is a target with the meters of its store.
type soakTarget struct {
	*target
	meters []Meter
}

var soakTargets = []struct {
	name string
	make func(t *testing.T) soakTarget
}{
	{"memory", soakedMemory}, {"zsetpoll", soakedRedis("zsetpoll")}, {"keyspace", soakedRedis("keyspace")}, {"redisson", soakedRedis("redisson")},
	{"sqlite", soakedSQLite}, {"postgres", soakedPostgres}, {"rabbitmq", soakedRabbit},
}

// TestSoak keeps each backend under load and faults for its share of -chaos.soak, in rounds. After
// each round everything is drained and checked, and the levels of process and store are sampled:
// they must not grow.
func TestSoak(t *testing.T) {
	if *soakFlag == 0 {
		t.Skip("-chaos.soak=1h soaks for an hour") // make soak
	}
	t.Logf("-chaos.seed=%d", *seedFlag)
	for _, s := range soakTargets {
		t.Run(s.name, func(t *testing.T) { soak(t, s.make(t), *soakFlag/time.Duration(len(soakTargets))) })
	}
}

// maxBroken is the number of rounds with broken rules after which a soak gives up. The first one
// does not end it: growth shows later.
const maxBroken = 3

func soak(t *testing.T, s soakTarget, share time.Duration) {
	s.rate = soakRate / s.parts()
	w := &Watch{Backend: s.name, Meters: append([]Meter{ProcessMeter()}, s.meters...)}
	length, broken, rounds := min(max(share/12, 5*time.Second), 30*time.Second), 0, 0
	for end := time.Now().Add(share); (time.Now().Before(end) || rounds < MinRounds) && broken < maxBroken; {
		var did Round // as a test of its own, so that everything that it started ends with it
		if !t.Run(fmt.Sprintf("round %d", rounds+1), func(t *testing.T) { did = soakRound(t, s.target, *seedFlag+uint64(rounds), length) }) {
			broken++
		}
		if did.Load == 0 { // the round did not end
			break
		}
		sample(t, w, did)
		rounds++
	}
	var b strings.Builder
	must(t, w.WriteTable(&b))
	t.Logf("\n%s", b.String())
	if rounds < MinRounds {
		t.Errorf("%s: %d rounds are too few to judge", w.Backend, rounds)
	}
	for _, g := range w.Leaks() {
		t.Errorf("%s grows: %v", w.Backend, g)
	}
}

// parts is the part of a target's rate that startClients and prepareProcesses give to pushers.
func (v *target) parts() float64 {
	return 0.8 + float64(len(v.opens)-1+count(!v.oneProcess))/20
}

// soakRound is a run of some length, whose history is checked and dropped.
func soakRound(t *testing.T, v *target, seed uint64, length time.Duration) Round {
	t.Helper()
	r := newRun(t, v, seed)
	faults := slices.DeleteFunc(r.faults(), func(f *fault) bool { return !slices.Contains(soakFaults, f.Name) })
	// The faults of TestChaos, where one follows the other, are spread over this many times their time.
	const spread = 4
	p := MakePlan(seed, v.name, length/spread, kindsOf(faults))
	p.For *= spread
	for i := range p.Strikes {
		p.Strikes[i].At *= spread
	}
	load := r.play(faults, p)
	report := check(t, v, r.finish())
	return Round{Messages: report.Verdict.Counts.Pushed, Load: load, Faults: report.Strikes()}
}

// soakFaults are the faults that take something away, which careless cleaning up would keep.
var soakFaults = []string{
	"contexts end", "handles closed", "worker kill -9", "pg_terminate_backend", "LISTEN dropped", "replies cut", "connections cut", "CLIENT KILL", "connections closed", "pub/sub dropped",
	"server kill -9", jumpsByHours,
}

// sample waits for a quiet moment.
func sample(t *testing.T, w *Watch, did Round) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	calm, stop := context.WithTimeout(ctx, 10*time.Second)
	defer stop()
	Calm(calm, 500*time.Millisecond)
	must(t, w.Sample(ctx, did))
}

func soakedMemory(t *testing.T) soakTarget {
	t.Helper()
	v := memoryTarget(t)
	b, err := v.opens[0](t.Context())
	must(t, err)
	leftovers := v.leftovers
	v.leftovers = func(ctx context.Context, b backend.Backend) ([]string, error) {
		defer v.clock.reset() // for the next round
		return leftovers(ctx, b)
	}
	return soakTarget{v, []Meter{DepthMeter(b, queueName)}}
}

// soakedRedis lets the clients of this process share backends that stay open from round to round, as
// a service does.
func soakedRedis(backendName string) func(t *testing.T) soakTarget {
	return func(t *testing.T) soakTarget {
		t.Helper()
		v := redisTarget(backendName, soakRate)(t)
		direct, err := v.direct.Open(t.Context())
		must(t, err)
		t.Cleanup(func() { _ = direct.Close() })
		for i, open := range v.opens {
			v.opens[i] = sharing(t, open)
		}
		v.poison = 0
		v.leftovers = func(ctx context.Context, _ backend.Backend) ([]string, error) { return remains(ctx, direct) }
		c := redis.NewClient(&redis.Options{Addr: v.direct.Addr})
		t.Cleanup(func() { _ = c.Close() })
		return soakTarget{v, []Meter{DepthMeter(direct, queueName), RedisMeter(c)}}
	}
}

// soakedSQLite has one more backend on the file, whose connections stay open from round to round. A
// backend opens those that read as they are needed, and by turns: some reads open all.
func soakedSQLite(t *testing.T) soakTarget {
	t.Helper()
	v := sqliteTarget(t)
	v.poison = 0
	direct, err := sharing(t, v.direct.Open)(t.Context())
	must(t, err)
	depth := DepthMeter(direct, queueName)
	for range 10 {
		_, err := depth.Read(t.Context())
		must(t, err)
	}
	return soakTarget{v, []Meter{depth, sqliteMeter(v.direct.Addr)}}
}

// moreFile is little more than the pages of indexes that are half empty, and one byte for each of a
// million messages.
const moreFile = 1 << 20

// sqliteMeter reads how much of a file is in use. It never shrinks, but its pages are used again.
func sqliteMeter(path string) Meter {
	return Meter{
		Gauges: []Gauge{{Name: "file in use", Bytes: true, Bound: moreFile}},
		Read: func(context.Context) (levels []int64, err error) {
			c, err := sqlite3.Open(path)
			if err != nil {
				return nil, fmt.Errorf("reading the file's levels: %w", err)
			}
			defer func() { _ = c.Close() }()
			s, _, err := c.Prepare("SELECT (page_count - freelist_count) * page_size FROM pragma_page_count, pragma_freelist_count, pragma_page_size")
			if err != nil {
				return nil, fmt.Errorf("reading the file's levels: %w", err)
			}
			defer func() { _ = s.Close() }()
			if !s.Step() {
				return nil, fmt.Errorf("reading the file's levels: %w", s.Err())
			}
			return []int64{s.ColumnInt64(0)}, nil
		},
	}
}

func soakedPostgres(t *testing.T) soakTarget {
	t.Helper()
	v := postgresTarget(t)
	v.poison = 0
	direct, err := sharing(t, v.direct.Open)(t.Context())
	must(t, err)
	for i, open := range v.opens {
		v.opens[i] = sharing(t, open)
	}
	admin := adminPool(t, v.direct.Addr)
	return soakTarget{v, []Meter{DepthMeter(direct, queueName), {
		Gauges: []Gauge{{Name: "rows"}, {Name: "connections", Bound: moreConnections}},
		Read: func(context.Context) ([]int64, error) {
			levels := make([]int64, 2)
			err := persist(func(ctx context.Context) error {
				return admin.QueryRow(ctx, `SELECT (SELECT count(*) FROM delayq_messages) + (SELECT count(*) FROM delayq_queues),
					(SELECT count(*) FROM pg_stat_activity WHERE backend_type = 'client backend')`).Scan(&levels[0], &levels[1])
			})
			return levels, err
		},
	}}}
}

func soakedRabbit(t *testing.T) soakTarget {
	t.Helper()
	s := testenv.RabbitMQ(&softFailing{TB: t}, testenv.PrivateRabbit(), retriesSoon())
	v := onBroker(t, s)
	v.mix = func(m *Mix) { m.Cancel, m.Reschedule = 0, 0 } // small batches would wait for the disk too often
	return soakTarget{v, []Meter{rabbitMeter(t, s)}}
}

// rabbitLevels reads a broker's levels, after a garbage collection of its processes and once its log
// is in segments: until then it keeps the log in memory too.
const rabbitLevels = `
	#{names := #{wal := Wal, segment_writer := Writer}} = ra_system:fetch(quorum_queues),
	ra_log_wal:force_roll_over(Wal), ra_log_segment_writer:await(Writer),
	[erlang:garbage_collect(P) || P <- processes()],
	Qs = rabbit_amqqueue:list(),
	Depth = lists:sum([begin {ok, N, _} = rabbit_amqqueue:stat(Q), N end || Q <- Qs]),
	lists:flatten(io_lib:format("~b ~b ~b ~b", [Depth, length(Qs), length(rabbit_networking:connections()), erlang:memory(total)])).`

// moreRabbitMemory is little more than the noise of a broker's allocators and tables, and many bytes
// for each of a million messages.
const moreRabbitMemory = 64 << 20

func rabbitMeter(t *testing.T, s *testenv.RabbitServer) Meter {
	t.Helper()
	return Meter{
		Gauges: []Gauge{{Name: "depth"}, {Name: "queues"}, {Name: "connections", Bound: 10}, {Name: "store memory", Bytes: true, Bound: moreRabbitMemory}},
		Read: func(context.Context) (levels []int64, err error) {
			var out string
			try(t, func() { out = s.Ctl("eval", rabbitLevels) })
			for _, field := range strings.Fields(strings.Trim(out, "\"\n ")) {
				n, err := strconv.ParseInt(field, 10, 64)
				if err != nil {
					return nil, fmt.Errorf("reading the broker's levels: %w", err)
				}
				levels = append(levels, n)
			}
			return levels, nil
		},
	}
}
