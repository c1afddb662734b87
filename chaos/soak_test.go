package chaos_test

import (
	"context"
	"flag"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/delayq/delayq/backend"
	"github.com/delayq/delayq/chaos"
	"github.com/delayq/delayq/internal/testenv"
)

var soakFlag = flag.Duration("chaos.soak", 0, "how long TestSoak runs in all, over all backends; 0 for not at all")

// soakRate is how many messages a second are pushed.
const soakRate = 2000

// A pool is a venue and what is to be read of its store.
type pool struct {
	*venue
	meters []chaos.Meter
}

var soaked = []struct {
	name string
	pool func(t *testing.T) pool
}{
	{"memory", memoryPool}, {"zsetpoll", redisPool("zsetpoll")}, {"keyspace", redisPool("keyspace")}, {"redisson", redisPool("redisson")},
	{"rabbitmq", rabbitPool},
}

// TestSoak keeps each backend under load and faults for its share of -chaos.soak, in rounds. After each everything is drained and judged, and what process
// and store still hold is sampled: it must not grow.
func TestSoak(t *testing.T) {
	if *soakFlag == 0 {
		t.Skip("-chaos.soak=1h soaks for an hour") // make soak
	}
	t.Logf("-chaos.seed=%d", *seedFlag)
	for _, s := range soaked {
		t.Run(s.name, func(t *testing.T) { soak(t, s.pool(t), *soakFlag/time.Duration(len(soaked))) })
	}
}

func soak(t *testing.T, p pool, share time.Duration) {
	p.rate = soakRate / p.offered()
	w := &chaos.Watch{Backend: p.name, Meters: append([]chaos.Meter{chaos.ProcessMeter()}, p.meters...)}
	length, broken := min(max(share/12, 5*time.Second), 30*time.Second), 0
	for end := time.Now().Add(share); (time.Now().Before(end) || w.Rounds() < chaos.MinRounds) && broken < mostBroken; {
		did, whole := oneRound(t, p.venue, w.Rounds(), length)
		if !whole {
			broken++
		}
		if did.Load == 0 { // it did not come to its end
			break
		}
		sample(t, w, did)
	}
	grown(t, w)
}

// mostBroken is after how many rounds whose histories break rules a soak gives up. The first is no reason to: what grows shows later.
const mostBroken = 3

// oneRound runs a round as a test of its own, so that all that was started for it ends with it.
func oneRound(t *testing.T, v *venue, n int, length time.Duration) (did chaos.Round, whole bool) {
	t.Helper()
	whole = t.Run(fmt.Sprintf("round %d", n+1), func(t *testing.T) { did = soakRound(t, v, *seedFlag+uint64(n), length) })
	return did, whole
}

// grown prints what was sampled, and fails for what grew.
func grown(t *testing.T, w *chaos.Watch) {
	t.Helper()
	var b strings.Builder
	must(t, w.WriteTable(&b))
	t.Logf("\n%s", b.String())
	if w.Rounds() < chaos.MinRounds {
		t.Errorf("%s: %d rounds are too few to judge", w.Backend, w.Rounds())
	}
	for _, g := range w.Leaks() {
		t.Errorf("%s grows: %v", w.Backend, g)
	}
}

// offered is the part of a venue's rate that startClients and prepareWorkers hand out.
func (v *venue) offered() float64 {
	parts := 0.8 + float64(len(v.opens)-1)/20
	if !v.inside {
		parts += 1.0 / 20
	}
	return parts
}

// soakRound is a run of some length, of whose history only figures remain.
func soakRound(t *testing.T, v *venue, seed uint64, length time.Duration) chaos.Round {
	t.Helper()
	r := newRun(t, v, seed)
	faults := soakFaults(append(append(actorFaults(r.env), workerFaults(r.workers)...), v.faults...))
	r.plan = thin(chaos.MakePlan(seed, v.name, length/thinner, kindsOf(faults)))
	if *planFlag {
		t.Log(r.plan.String())
	}
	began := time.Now()
	r.startClients()
	r.warm()
	d := newDirector(t, faults)
	d.play(t.Context(), r.plan)
	load := time.Since(began)
	r.windows = d.windows
	if v.settle != nil {
		r.windows = append(r.windows, v.settle(t))
	}
	report := judged(t, v, r.finish(), length)
	return chaos.Round{Messages: report.Verdict.Counts.Pushed, Load: load, Faults: chaos.Strikes([]chaos.Report{report})}
}

// mild are the faults of a soak: those that take something away, which whoever cleans up carelessly then keeps.
var mild = []string{
	"contexts end", "handles closed", "worker kill -9", "replies cut", "connections cut", "CLIENT KILL", "connections closed", "pub/sub dropped",
	"server kill -9", jumpsByHours,
}

func soakFaults(all []*fault) []*fault {
	return slices.DeleteFunc(all, func(f *fault) bool { return !slices.Contains(mild, f.Name) })
}

// thinner is how much rarer faults are than in TestChaos, where one follows the other.
const thinner = 4

// thin draws a plan out. What strikes lasts no longer.
func thin(p chaos.Plan) chaos.Plan {
	p.For *= thinner
	for i := range p.Strikes {
		p.Strikes[i].At *= thinner
	}
	return p
}

// sample waits for a quiet moment.
func sample(t *testing.T, w *chaos.Watch, did chaos.Round) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	calm, stop := context.WithTimeout(ctx, 10*time.Second)
	defer stop()
	chaos.Calm(calm, 500*time.Millisecond)
	must(t, w.Sample(ctx, did))
}

// memoryPool sets the clock right before each round: settle leaves it where all is due.
func memoryPool(t *testing.T) pool {
	t.Helper()
	v := memoryVenue(t)
	b, err := v.opens[0](t.Context())
	must(t, err)
	left := v.left
	v.left = func(ctx context.Context, b backend.Backend) ([]string, error) {
		defer v.clock.again()
		return left(ctx, b)
	}
	return pool{v, []chaos.Meter{chaos.DepthMeter(b, queueName)}}
}

func redisPool(backendName string) func(t *testing.T) pool {
	return func(t *testing.T) pool {
		t.Helper()
		v := lastingVenue(t, redisVenue(backendName, soakRate)(t))
		c := redis.NewClient(&redis.Options{Addr: v.straight.Addr})
		t.Cleanup(func() { _ = c.Close() })
		b, err := v.opens[0](t.Context())
		must(t, err)
		return pool{v, []chaos.Meter{chaos.DepthMeter(b, queueName), chaos.RedisMeter(c)}}
	}
}

// lastingVenue has the actors of this process share backends that stay open from round to round, as those of a service do.
func lastingVenue(t *testing.T, v *venue) *venue {
	t.Helper()
	for i, open := range v.opens {
		v.opens[i] = sharing(t, open)
	}
	v.poison = 0
	v.left = func(ctx context.Context, _ backend.Backend) ([]string, error) {
		b, err := v.straight.Open(ctx)
		if err != nil {
			return nil, err
		}
		defer func() { _ = b.Close() }()
		return remains(ctx, b)
	}
	return v
}

func rabbitPool(t *testing.T) pool {
	t.Helper()
	s := testenv.RabbitMQ(&soft{TB: t}, testenv.PrivateRabbit(), triesSoon())
	v := rabbitOn(t, s)
	mix := v.mix
	v.mix = func(m *chaos.Mix) {
		batches := m.Batches
		mix(m)
		m.Batches = batches // small ones wait for the disk too often to come to the rate
	}
	return pool{v, []chaos.Meter{rabbitMeter(t, s)}}
}

// rabbitLevels reads what a broker holds, when its processes' garbage is gone and its log is written to segments: until then it keeps it in memory too.
const rabbitLevels = `
	#{names := #{wal := Wal, segment_writer := Writer}} = ra_system:fetch(quorum_queues),
	ra_log_wal:force_roll_over(Wal), ra_log_segment_writer:await(Writer),
	[erlang:garbage_collect(P) || P <- processes()],
	Qs = rabbit_amqqueue:list(),
	Depth = lists:sum([begin {ok, N, _} = rabbit_amqqueue:stat(Q), N end || Q <- Qs]),
	lists:flatten(io_lib:format("~b ~b ~b ~b", [Depth, length(Qs), length(rabbit_networking:connections()), erlang:memory(total)])).`

// moreRabbitMemory is little beside what a broker's allocators and tables differ by from moment to moment, and many bytes for each of a million messages.
const moreRabbitMemory = 64 << 20

func rabbitMeter(t *testing.T, s *testenv.RabbitServer) chaos.Meter {
	t.Helper()
	return chaos.Meter{
		Gauges: []chaos.Gauge{{Name: "depth"}, {Name: "queues"}, {Name: "connections", Bound: 10}, {Name: "store memory", Bytes: true, Bound: moreRabbitMemory}},
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
