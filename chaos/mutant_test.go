package chaos

import (
	"fmt"
	"net/url"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"text/tabwriter"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/delayq/delayq/internal/judge"
	scripts "github.com/delayq/delayq/internal/redis/redistest"
	"github.com/delayq/delayq/internal/testenv"
	"github.com/delayq/delayq/postgres"
)

// A mutant is a backend whose Lua scripts are changed on their way to the server, or whose functions
// in PostgreSQL are. The backend itself stays as it is.
type mutant struct {
	name, backend string
	rule          string // that a run has to find broken
	fault         string // without which the mutant does not show; "" for none
	edits         []edit
	placed        sync.Map // edits whose text some script has
}

// An edit replaces a text wherever it occurs in a script.
type edit struct{ old, text string }

// hook returns a hook for all clients of one server.
func (m *mutant) hook() redis.Hook {
	return scripts.Rewrite(m.edit)
}

func (m *mutant) edit(script string) string {
	for _, e := range m.edits {
		if strings.Contains(script, e.old) {
			script = strings.ReplaceAll(script, e.old, e.text)
			m.placed.Store(e, true)
		}
	}
	return script
}

// mutants are broken backends, each with the rule by which a run has to find it.
var mutants = []*mutant{
	{name: "a claim without the lease", backend: "zsetpoll", rule: "lost", edits: []edit{{"on('ZADD', LEASES, ends)", ""}}},
	{name: "a claim that removes before it adds", backend: "zsetpoll", rule: "lost", fault: rightTakenName, edits: []edit{
		{"  on('ZADD', LEASES, ends)\n", "  if due_taken > 0 then\n    redis.call('ZREMRANGEBYRANK', DUE, 0, due_taken - 1)\n  end\n  on('ZADD', LEASES, ends)\n"},
		{"  if due_taken > 0 then\n    redis.call('ZREMRANGEBYRANK', DUE, 0, due_taken - 1)\n  end\nend\n", "end\n"},
	}},
	{name: "a claim that leaves the message due", backend: "zsetpoll", rule: "lease", edits: []edit{{"redis.call('ZREMRANGEBYRANK', DUE, 0, due_taken - 1)", ""}}},
	{name: "an addition before the removal", backend: "zsetpoll", rule: "full", fault: "maxmemory", edits: []edit{
		{"redis.call('ZREM', LEASES, '') -- removes nothing: then a server out of memory lets an addition pass", ""},
	}},
	{name: "a stale token accepted", backend: "keyspace", rule: "lease", edits: []edit{
		{"not RETRY and ack_all()", "false"},
		{"local holds = holds_all(ms, firsts)\nlocal outcomes = {}", "local holds = {}\nfor i, m in ipairs(ms) do holds[i] = redis.call('HEXISTS', MSG, id_of(m)) == 1 and '' end\nlocal outcomes = {}"},
	}},
	{name: "due 30 ms early", backend: "keyspace", rule: "early", edits: []edit{
		{"page = redis.call('ZRANGEBYSCORE', DUE, '-inf', latest,", "page = redis.call('ZRANGEBYSCORE', DUE, '-inf', latest + 30,"},
	}},
	{name: "due times rounded down", backend: "zsetpoll", rule: "early", edits: []edit{
		{"return math.ceil((NOW_US + us) / 1000)", "return math.floor((NOW_US + us) / 1000)"},
	}},
	{name: "claims by a clock that is never set back", backend: "zsetpoll", rule: "early", fault: jumpsByHours, edits: []edit{
		{"local function hand_out_due()", `NOW = math.max(NOW, tonumber(redis.call('GET', DUE .. 'now') or 0))
			NOW_US = 1000 * NOW
			redis.call('SET', DUE .. 'now', int(NOW))
			local function hand_out_due()`},
	}},
	{name: "leases end 100 ms early, also after jumps", backend: "keyspace", rule: "lease", fault: jumpsByHours, edits: []edit{
		{"local ended = redis.call('ZRANGEBYSCORE', LEASES, '-inf', NOW,", "local ended = redis.call('ZRANGEBYSCORE', LEASES, '-inf', NOW + 100,"},
		{"ends_first > NOW", "ends_first > NOW + 100"},
	}},
	{name: "a nack without its delay", backend: "zsetpoll", rule: "early", edits: []edit{{"due_in(holds[i]) or after(delay)", "due_in(holds[i]) or NOW"}}},
	{name: "ended leases are dropped", backend: "zsetpoll", rule: "lost", edits: []edit{{"put_back(ms, dues, {}, seqs)\n  on('ZREM', DUE, ms)", ""}}},
	{name: "attempts are not counted", backend: "keyspace", rule: "attempts", edits: []edit{
		{"now, untouched = member_now(id_of(m), rec, v)", "now, untouched = m, (gens_in(v))"},
	}},
	{name: "an untouched delivery is counted", backend: "zsetpoll", rule: "attempts", edits: []edit{
		{"if untouched[i] then\n        spared = spared + 1", "if untouched[i] then\n        spared = spared + 0"},
	}},
	{name: "a cancel takes a leased message", backend: "zsetpoll", rule: "linearizable", edits: []edit{
		{"if holds_all({m})[1] then\n    return nil, 'HELD'\n  end", "if holds_all({m})[1] then\n    release({m})\n    return m\n  end"},
	}},
	{name: "a cancel removes nothing", backend: "keyspace", rule: "duplicated", edits: []edit{
		{"    m, why = waiting(id)\n  end\n  if m then\n    taken", "    m, why = nil, nil\n  end\n  if m then\n    taken"},
	}},
	{name: "a message that was moved is not found", backend: "keyspace", rule: "linearizable", edits: []edit{
		{"local m = member_now(id, rec, v)\n  local due = tonumber(", "local m = member_now(id, rec, false)\n  local due = tonumber("},
	}},
	{name: "a second push replaces the first", backend: "zsetpoll", rule: "linearizable", edits: []edit{
		{"outcome = redis.pcall('HSETNX', MSG, id, s .. content)", "redis.call('HSET', MSG, id, s .. content)\n    outcome = 1"},
	}},
	{name: "a replacement with the old content", backend: "keyspace", rule: "replaced", edits: []edit{
		{"redis.pcall('HSET', MSG, id, s .. content)", "redis.pcall('HSET', MSG, id, s .. (m and string.sub(redis.call('HGET', MSG, id), 8) or content))"},
	}},
	{name: "a replacement of a message in flight", backend: "zsetpoll", rule: "linearizable", edits: []edit{
		{"    if why == 'HELD' then\n      return 3\n    elseif not m and", "    if not m and"},
	}},
	{name: "an ack of a message that was replaced in flight", backend: "zsetpoll", rule: "linearizable", edits: []edit{
		{"not RETRY and ack_all()", "false"},
		{"if holds[i] and replaced(m, holds[i]) then\n    holds[i], outcomes[i] = false, 3", "if false then\n    holds[i], outcomes[i] = false, 3"},
	}},
	{name: "an extension that does not extend", backend: "zsetpoll", rule: "lease", edits: []edit{{"on('ZADD', LEASES, entries)", ""}}},
	{name: "a dead letter is not stored", backend: "zsetpoll", rule: "lost", edits: []edit{
		{"on('ZADD', DEAD, deaths)", "for i = 2, #deaths, 2 do redis.call('HDEL', MSG, deaths[i]) end"},
	}},
	{name: "a byte of the body is lost", backend: "keyspace", rule: "unexpected", edits: []edit{
		{"redis.pcall('HSETNX', MSG, id, s .. content)", "redis.pcall('HSETNX', MSG, id, s .. string.sub(content, 1, -2))"},
	}},
	{name: "a batch in reverse order", backend: "zsetpoll", rule: "order", edits: []edit{{"for i = 1, #page, 2 do", "for i = #page - 1, 1, -2 do"}}},
	{name: "a receive of one gets the last", backend: "keyspace", rule: "order", edits: []edit{
		{"redis.call('ZRANGEBYSCORE', DUE, '-inf', latest, 'WITHSCORES'", "redis.call(limit == 1 and 'ZREVRANGEBYSCORE' or 'ZRANGEBYSCORE', DUE, limit == 1 and latest or '-inf', limit == 1 and '-inf' or latest, 'WITHSCORES'"},
		{"  due_taken = hand_out_first(ms, dues)\nend", "  due_taken = hand_out_first(ms, dues)\n  if due_taken > 0 and limit == 0 and #ms == 1 then\n    redis.call('ZREM', DUE, ms[1])\n    due_taken = 0\n  end\nend"},
	}},
	{name: "two queues share keys", backend: "zsetpoll", rule: "isolation", edits: []edit{
		{"local DUE, MSG, LEASES,", "for i, k in ipairs(KEYS) do\n  KEYS[i] = string.gsub(k, 'chaos%-second', 'chaos')\nend\nlocal DUE, MSG, LEASES,"},
	}},
	{name: "a worker that found nothing looks again much later", backend: "zsetpoll", rule: "wake-up", edits: []edit{
		{"local fresh = not (RETRY and claimed_before())", "if redis.call('EXISTS', 'asleep' .. DUE) == 1 then\n  return out\nend\nlocal fresh = not (RETRY and claimed_before())"},
		{"  return failed\nend\nout[2] = sooner(head", "  return failed\nend\nif #out == 3 and string.find(DUE, 'second') then\n  redis.call('SET', 'asleep' .. DUE, 1, 'PX', 12000)\nend\nout[2] = sooner(head"},
	}},
	{name: "dead letters are not counted", backend: "zsetpoll", rule: "accounting", edits: []edit{{"  in_flight,\n  dead,\n", "  in_flight,\n  0,\n"}}},
	{name: "an unknown id is cancelled", backend: "keyspace", rule: "input", edits: []edit{
		{"outcomes[#outcomes + 1] = why or 'OK'\nend\nif #taken", "outcomes[#outcomes + 1] = why ~= 'NONE' and why or 'OK'\nend\nif #taken"},
	}},
	{name: "an ack leaves keys behind", backend: "keyspace", rule: "empty", edits: []edit{
		{"  on('HDEL', GENS, came_back)\n", ""},
		{"return left == 0 and\n", "return left == 0 and #came_back == 0 and\n"},
	}},
	{name: "a nack for an hour", backend: "zsetpoll", rule: "drained", edits: []edit{
		{"due_in(holds[i]) or after(delay)", "due_in(holds[i]) or after(delay) + 3600000"},
	}},
	{name: "a claim that overlooks a pause", backend: "zsetpoll", rule: "paused", edits: []edit{
		{"    if there % 2 == 1 then\n      paused, resumes = pause_state()\n    end\n", ""},
	}},
	{name: "an ack removes nothing", backend: "zsetpoll", rule: "duplicated", edits: []edit{
		{"local done = held(ms, holds)\nlocal ids", "local done = {}\nlocal ids"},
	}},
	{name: "redisson: a stale token accepted", backend: "redisson", rule: "lease", edits: []edit{{"string.sub(v, 1, STAMP) == mark and in_force(key)", "true"}}},
	{name: "redisson: due 30 ms early", backend: "redisson-envelope", rule: "early", edits: []edit{
		{"local NOW = math.floor(NOW_US / 1000)", "local NOW = math.floor(NOW_US / 1000) + 30"},
	}},
	{name: "redisson: a nack drops the message", backend: "redisson", rule: "lost", edits: []edit{
		{"  give_back(unpack(returned[i]))\n", "  end_lease(returned[i][1])\n"},
	}},
	{name: "redisson: an addition before the removal", backend: "redisson-envelope", rule: "full", fault: "maxmemory", edits: []edit{
		{"local leased_before = RETRY", "redis.call('HSET', HELD, '', '')\nredis.call('HDEL', HELD, '')\nlocal leased_before = RETRY"},
	}},
	{name: "postgres: due 30 ms early", backend: "postgres", rule: "early", edits: []edit{
		{"m.at >= floor_at AND m.at <= t\n", "m.at >= floor_at AND m.at <= t + 30000\n"},
	}},
	{name: "postgres: a claim without locks", backend: "postgres", rule: "lease", edits: []edit{
		{"LIMIT p_limit FOR UPDATE SKIP LOCKED", "LIMIT p_limit"},
	}},
	{name: "postgres: a stale token accepted", backend: "postgres", rule: "lease", edits: []edit{
		{"AND m.token = u.token AND m.at + 0 > t AND m.attempts > 0\n                  AND (m.unique_until", "\n                  AND (m.unique_until"},
	}},
	{name: "postgres: a nack drops the message", backend: "postgres", rule: "lost", edits: []edit{
		{"SET state = 0, at = CASE WHEN u.untouched", "SET state = 3, at = CASE WHEN u.untouched"},
	}},
	{name: "postgres: a cancel takes a leased message", backend: "postgres", rule: "linearizable", edits: []edit{
		{"CASE WHEN m.state = 1 AND m.at <= t THEN 0 ELSE m.state END AS state", "CASE WHEN m.state = 1 THEN 0 ELSE m.state END AS state"},
	}},
}

// TestMutants checks the checkers: a run has to find each mutant by the rule that it breaks.
func TestMutants(t *testing.T) {
	parallelInLongRun(t)
	rows := make([]string, len(mutants))
	t.Run("mutants", func(t *testing.T) {
		for i, m := range mutants {
			t.Run(m.name, func(t *testing.T) {
				t.Parallel()
				rows[i] = findMutant(t, m)
			})
		}
	})
	var b strings.Builder
	table := tabwriter.NewWriter(&b, 0, 0, 2, ' ', 0)
	_, _ = fmt.Fprintln(table, "mutant\tbackend\tto be found by\tfound by\tmessages\t")
	for _, row := range slices.DeleteFunc(rows, func(row string) bool { return row == "" }) { // those that -run leaves out
		_, _ = fmt.Fprintln(table, row)
	}
	must(t, table.Flush())
	t.Logf("-chaos.seed=%d\n%s", *seedFlag, b.String())
}

const mutantTime = 3 * time.Second // of load

// findMutant runs a mutant until its rule finds it, at most three times, and returns its row of the
// table. Each run is twice as long as the one before: a busy machine may do too little in the first.
func findMutant(t *testing.T, m *mutant) string {
	t.Helper()
	length := mutantTime
	if m.fault == jumpsByHours {
		length *= 3 // forward, and for long enough back
	}
	for runs := 1; ; runs++ {
		at := m.target(t)
		at.ownFaults = m.fault != "" // others would take the time in which it has to strike
		h := runPlan(t, at, *seedFlag, length)
		v := judge.Check(h)
		if found := slices.Contains(v.Rules(), m.rule); found || runs == 3 {
			for _, e := range m.edits {
				if _, ok := m.placed.Load(e); !ok {
					t.Errorf("no script has the text of the edit %q", e)
				}
			}
			if !found {
				t.Errorf("not found by the rule %q; -chaos.seed=%d found %v\n%s", m.rule, *seedFlag, v.Rules(), store(h, v))
			}
			return fmt.Sprintf("%s\t%s\t%s\t%v\t%d\t", m.name, m.backend, m.rule, v.Rules(), v.Counts.Messages)
		}
		length *= 2
	}
}

// TestOriginals runs the same backends unchanged: no rule may be broken.
func TestOriginals(t *testing.T) {
	for _, name := range []string{"zsetpoll", "keyspace", "redisson", "redisson-envelope", "postgres"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for length := mutantTime; ; length *= 2 { // a busy machine may do too little for each rule
				v := (&mutant{backend: name, fault: "maxmemory"}).target(t)
				h := runPlan(t, v, *seedFlag, length)
				if verdict := judge.Check(h); len(verdict.Violations) > 0 || len(verdict.Idle(h, !v.skipCalm)) == 0 || length > 2*mutantTime {
					check(t, v, h)
					return
				}
			}
		})
	}
}

// target is a server without faults, except the one that the mutant needs to show. Clients do more
// than push, receive and ack much more often than elsewhere, since the run is short.
func (m *mutant) target(t *testing.T) *target {
	t.Helper()
	if m.backend == "postgres" {
		return m.inShort(m.onPostgres(t))
	}
	opts := []testenv.Option{testenv.Private()}
	var clock *storeClock
	if m.fault == jumpsByHours {
		c := testenv.NewClock(t, 0)
		opts, clock = append(opts, testenv.OnClock(c)), newServerClock(t, c)
	}
	s := testenv.Redis(t, opts...)
	faults := redisFaults(s, s.Client(t, retrying))
	v := onRedis("", Endpoint{Backend: m.backend, Addr: s.Addr(), Hooks: []redis.Hook{m.hook()}})
	if clock != nil {
		v.clock, v.lastFault = clock, clock.jumpLast
		faults = jumpFaults(clock, 2*time.Second) // longer than its leases
	}
	if m.fault != "" {
		v.faults = slices.DeleteFunc(faults, func(f *fault) bool { return f.Name != m.fault })
	}
	return m.inShort(v)
}

// onPostgres is a database of its own with changed functions, on the server that tests share.
func (m *mutant) onPostgres(t *testing.T) *target {
	t.Helper()
	s := testenv.SharedPostgres(t)
	name := fmt.Sprintf("mutant_%d", databases.Add(1))
	_, err := adminPool(t, s.URL()).Exec(t.Context(), "CREATE DATABASE "+name)
	must(t, err)
	u, err := url.Parse(s.URL())
	must(t, err)
	u.Path = name
	text, err := postgres.SQL()
	must(t, err)
	_, err = adminPool(t, u.String()).Exec(t.Context(), m.edit(text))
	must(t, err)
	at := Endpoint{Backend: "postgres", Addr: u.String()}
	return &target{opens: []OpenFunc{sharing(t, at.Open), sharing(t, at.Open)}, leftovers: remains}
}

var databases atomic.Int64

// inShort has a target show all that it does within the short time of a mutant.
func (m *mutant) inShort(v *target) *target {
	v.name, v.oneProcess, v.repeats, v.rate, v.drainTime = m.backend, true, false, 3000, 12*time.Second
	v.mix = func(mix *Mix) {
		mix.Nack, mix.Untouched, mix.Extend, mix.Dead, mix.Abandon, mix.Late = 0.05, 0.03, 0.05, 0.02, 0.03, 0.08
		mix.Cancel, mix.Reschedule, mix.Replace, mix.PushAgain = 0.05, 0.03, 0.03, 0.02
		mix.Delay = 500 * time.Millisecond
		mix.Leases = []time.Duration{300 * time.Millisecond, 700 * time.Millisecond}
	}
	return v
}
