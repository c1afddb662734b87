package chaos_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"text/tabwriter"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/delayq/delayq/chaos"
	"github.com/delayq/delayq/internal/judge"
	"github.com/delayq/delayq/internal/testenv"
)

// mutants are broken backends, each with the rule by which a run has to find it.
func mutants() []*chaos.Mutant { return append(storeMutants(), redissonMutants()...) }

func storeMutants() []*chaos.Mutant {
	return []*chaos.Mutant{
		{
			Name: "a claim without the lease", Backend: "zsetpoll", Finds: "lost", Edits: []chaos.Edit{
				{"on('ZADD', LEASES, ends)", ""},
			},
		},
		{
			Name: "a claim that removes before it adds", Backend: "zsetpoll", Finds: "lost", Faults: []string{rightTakenName}, Edits: []chaos.Edit{
				{"  on('ZADD', LEASES, ends)\n", "  if due_taken > 0 then\n    redis.call('ZREMRANGEBYRANK', DUE, 0, due_taken - 1)\n  end\n  on('ZADD', LEASES, ends)\n"},
				{"  if due_taken > 0 then\n    redis.call('ZREMRANGEBYRANK', DUE, 0, due_taken - 1)\n  end\nend\n", "end\n"},
			},
		},
		{
			Name: "a claim that leaves the message due", Backend: "zsetpoll", Finds: "lease", Edits: []chaos.Edit{
				{"redis.call('ZREMRANGEBYRANK', DUE, 0, due_taken - 1)", ""},
			},
		},
		{
			Name: "an addition before the removal", Backend: "zsetpoll", Finds: "full", Faults: []string{"maxmemory"}, Edits: []chaos.Edit{
				{"redis.call('ZREM', LEASES, '') -- removes nothing: then a server out of memory lets an addition pass", ""},
			},
		},
		{
			Name: "a stale token accepted", Backend: "keyspace", Finds: "lease", Edits: []chaos.Edit{
				{
					"local holds = holds_all(ms, firsts)\nlocal done = held(ms, holds)\nlocal ids",
					"local holds = {}\nfor i, m in ipairs(ms) do holds[i] = redis.call('HEXISTS', MSG, id_of(m)) == 1 end\nlocal done = held(ms, holds)\nlocal ids",
				},
			},
		},
		{
			Name: "due 30 ms early", Backend: "keyspace", Finds: "early", Edits: []chaos.Edit{
				{"page = redis.call('ZRANGEBYSCORE', DUE, '-inf', int(NOW),", "page = redis.call('ZRANGEBYSCORE', DUE, '-inf', int(NOW + 30),"},
			},
		},
		{
			Name: "due times rounded down", Backend: "zsetpoll", Finds: "early", Edits: []chaos.Edit{
				{"return math.ceil((NOW_US + us) / 1000)", "return math.floor((NOW_US + us) / 1000)"},
			},
		},
		{
			Name: "claims by a clock that is never set back", Backend: "zsetpoll", Finds: "early", Faults: []string{jumpsByHours}, Edits: []chaos.Edit{
				{"local function hand_out_due()", `NOW = math.max(NOW, tonumber(redis.call('GET', DUE .. 'now') or 0))
					NOW_US = 1000 * NOW
					redis.call('SET', DUE .. 'now', int(NOW))
					local function hand_out_due()`},
			},
		},
		{
			Name: "leases end 100 ms early, also after jumps", Backend: "keyspace", Finds: "lease", Faults: []string{jumpsByHours}, Edits: []chaos.Edit{
				{"local ended = redis.call('ZRANGEBYSCORE', LEASES, '-inf', int(NOW),", "local ended = redis.call('ZRANGEBYSCORE', LEASES, '-inf', int(NOW + 100),"},
			},
		},
		{
			Name: "a nack without its delay", Backend: "zsetpoll", Finds: "early", Edits: []chaos.Edit{
				{"due_in(holds[i]) or after(delay)", "due_in(holds[i]) or NOW"},
			},
		},
		{
			Name: "ended leases are dropped", Backend: "zsetpoll", Finds: "lost", Edits: []chaos.Edit{
				{"put_back(ms, dues, {})\n  on('ZREM', DUE, ms)", ""},
			},
		},
		{
			Name: "attempts are not counted", Backend: "keyspace", Finds: "attempts", Edits: []chaos.Edit{
				{"now, untouched = member_now(id_of(m), rec, v)", "now, untouched = m, (gens_in(v))"},
			},
		},
		{
			Name: "an untouched delivery is counted", Backend: "zsetpoll", Finds: "attempts", Edits: []chaos.Edit{
				{"if untouched[i] then\n        spared = spared + 1", "if untouched[i] then\n        spared = spared + 0"},
			},
		},
		{
			Name: "a cancel takes a leased message", Backend: "zsetpoll", Finds: "linearizable", Edits: []chaos.Edit{
				{"if holds_all({m})[1] then\n    return nil, 'HELD'\n  end", "if holds_all({m})[1] then\n    release({m})\n    return m\n  end"},
			},
		},
		{
			Name: "a cancel removes nothing", Backend: "keyspace", Finds: "duplicated", Edits: []chaos.Edit{
				{"    m, why = waiting(id)\n  end\n  if m then\n    taken", "    m, why = nil, nil\n  end\n  if m then\n    taken"},
			},
		},
		{
			Name: "a second push replaces the first", Backend: "zsetpoll", Finds: "linearizable", Edits: []chaos.Edit{
				{"outcome = redis.pcall('HSETNX', MSG, id, s .. content)", "redis.call('HSET', MSG, id, s .. content)\n    outcome = 1"},
			},
		},
		{
			Name: "an extension that does not extend", Backend: "zsetpoll", Finds: "lease", Edits: []chaos.Edit{
				{"on('ZADD', LEASES, entries)", ""},
			},
		},
		{
			Name: "a dead letter is not stored", Backend: "zsetpoll", Finds: "lost", Edits: []chaos.Edit{
				{"on('ZADD', DEAD, deaths)", "for i = 2, #deaths, 2 do redis.call('HDEL', MSG, deaths[i]) end"},
			},
		},
		{
			Name: "a byte of the body is lost", Backend: "keyspace", Finds: "unexpected", Edits: []chaos.Edit{
				{"redis.pcall('HSETNX', MSG, id, s .. content)", "redis.pcall('HSETNX', MSG, id, s .. string.sub(content, 1, -2))"},
			},
		},
		{
			Name: "a batch in reverse order", Backend: "zsetpoll", Finds: "order", Edits: []chaos.Edit{
				{"for i = 1, #page, 2 do", "for i = #page - 1, 1, -2 do"},
			},
		},
		{
			Name: "a receive of one gets the last", Backend: "keyspace", Finds: "order", Edits: []chaos.Edit{
				{
					"redis.call('ZRANGEBYSCORE', DUE, '-inf', int(NOW), 'WITHSCORES'",
					"redis.call(limit == 1 and 'ZREVRANGEBYSCORE' or 'ZRANGEBYSCORE', DUE, limit == 1 and int(NOW) or '-inf', limit == 1 and '-inf' or int(NOW), 'WITHSCORES'",
				},
				{"  due_taken = hand_out_first(ms, dues)\nend", "  due_taken = hand_out_first(ms, dues)\n  if due_taken > 0 and limit == 0 and #ms == 1 then\n    redis.call('ZREM', DUE, ms[1])\n    due_taken = 0\n  end\nend"},
			},
		},
		{
			Name: "two queues share keys", Backend: "zsetpoll", Finds: "isolation", Edits: []chaos.Edit{
				{"local DUE, MSG, LEASES,", "for i, k in ipairs(KEYS) do\n  KEYS[i] = string.gsub(k, 'chaos%-second', 'chaos')\nend\nlocal DUE, MSG, LEASES,"},
			},
		},
		{
			Name: "a worker that found nothing looks again much later", Backend: "zsetpoll", Finds: "wake-up", Edits: []chaos.Edit{
				{
					"if not (RETRY and claimed_before()) and not expire() then",
					"if redis.call('EXISTS', 'asleep' .. DUE) == 1 then\n  out[2] = '-1'\n  return out\nend\nif not (RETRY and claimed_before()) and not expire() then",
				},
				{
					"    return failed\n  end\nend\nlocal event",
					"    return failed\n  end\nend\nif #out == 3 and string.find(DUE, 'second') then\n  redis.call('SET', 'asleep' .. DUE, 1, 'PX', 12000)\nend\nlocal event",
				},
			},
		},
		{
			Name: "dead letters are not counted", Backend: "zsetpoll", Finds: "accounting", Edits: []chaos.Edit{
				{"  in_flight,\n  dead,\n", "  in_flight,\n  0,\n"},
			},
		},
		{
			Name: "an unknown id is cancelled", Backend: "keyspace", Finds: "input", Edits: []chaos.Edit{
				{"outcomes[#outcomes + 1] = why or 'OK'\nend\nif #taken", "outcomes[#outcomes + 1] = why ~= 'NONE' and why or 'OK'\nend\nif #taken"},
			},
		},
		{
			Name: "an ack leaves keys behind", Backend: "keyspace", Finds: "empty", Edits: []chaos.Edit{
				{"  if all.returned then\n    on('HDEL', GENS, ids)\n  end\n", ""},
				{"return left == 0 and\n", "return left == 0 and not all.returned and\n"},
			},
		},
		{
			Name: "a nack for an hour", Backend: "zsetpoll", Finds: "drained", Edits: []chaos.Edit{
				{"due_in(holds[i]) or after(delay)", "due_in(holds[i]) or after(delay) + 3600000"},
			},
		},
		{
			Name: "an ack removes nothing", Backend: "zsetpoll", Finds: "duplicated", Edits: []chaos.Edit{
				{"local done = held(ms, holds)\nlocal ids", "local done = {}\nlocal ids"},
			},
		},
	}
}

func redissonMutants() []*chaos.Mutant {
	return []*chaos.Mutant{
		{
			Name: "redisson: a stale token accepted", Backend: "redisson", Finds: "lease", Edits: []chaos.Edit{
				{"string.sub(v, 1, STAMP) == mark and in_force(key)", "true"},
			},
		},
		{
			Name: "redisson: due 30 ms early", Backend: "redisson-envelope", Finds: "early", Edits: []chaos.Edit{
				{"local NOW = math.floor(NOW_US / 1000)", "local NOW = math.floor(NOW_US / 1000) + 30"},
			},
		},
		{
			Name: "redisson: a nack drops the message", Backend: "redisson", Finds: "lost", Edits: []chaos.Edit{
				{"  give_back(unpack(returned[i]))\n", "  end_lease(returned[i][1])\n"},
			},
		},
		{
			Name: "redisson: an addition before the removal", Backend: "redisson-envelope", Finds: "full", Faults: []string{"maxmemory"}, Edits: []chaos.Edit{
				{"  expire()\n  if more_ended then", "  redis.call('HSET', HELD, '', '')\n  redis.call('HDEL', HELD, '')\n  expire()\n  if more_ended then"},
			},
		},
	}
}

// TestMutants checks the checkers: each broken backend has to be found by the rule that it breaks. A
// hook of the client changes a script on its way to the server.
func TestMutants(t *testing.T) {
	beside(t)
	ms := mutants()
	rows := make([]string, len(ms))
	t.Run("mutants", func(t *testing.T) {
		for i, m := range ms {
			t.Run(m.Name, func(t *testing.T) {
				t.Parallel()
				rows[i] = caught(t, m)
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

// mutantTime is how long a mutant's load runs.
const mutantTime = 3 * time.Second

// caught runs a mutant and returns its row of the table.
func caught(t *testing.T, m *chaos.Mutant) string {
	t.Helper()
	length := mutantTime
	if slices.Contains(m.Faults, jumpsByHours) {
		length *= 3 // forward, and for long enough back
	}
	h := put(t, mutantVenue(m)(t), *seedFlag, length)
	v := judge.Check(h)
	if idle := m.Idle(); len(idle) > 0 {
		t.Fatalf("no script has what is to be changed: %q", idle)
	}
	if !slices.Contains(v.Rules(), m.Finds) {
		t.Errorf("not found by the rule %q; -chaos.seed=%d found %v\n%s", m.Finds, *seedFlag, v.Rules(), keep(t, h, v))
	}
	return fmt.Sprintf("%s\t%s\t%s\t%v\t%d\t", m.Name, m.Backend, m.Finds, v.Rules(), v.Counts.Messages)
}

// TestOriginals runs the same backends unchanged: nothing may be found.
func TestOriginals(t *testing.T) {
	for _, name := range []string{"zsetpoll", "keyspace", "redisson", "redisson-envelope"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			v := mutantVenue(&chaos.Mutant{Backend: name, Faults: []string{"maxmemory"}})(t)
			judged(t, v, put(t, v, *seedFlag, mutantTime), mutantTime)
		})
	}
}

// mutantVenue is a server without faults, except those that the mutant needs to show.
func mutantVenue(m *chaos.Mutant) venueFunc {
	return func(t *testing.T) *venue {
		t.Helper()
		s, clock := mutantServer(t, slices.Contains(m.Faults, jumpsByHours))
		at := chaos.Endpoint{Backend: m.Backend, Addr: s.Addr(), Hooks: []redis.Hook{m}}
		v := &venue{
			name: m.Backend, inside: true, rate: 3000, patient: 12 * time.Second, left: remains,
			opens: []chaos.OpenFunc{at.Open},
			mix:   often,
		}
		faults := redisFaults(s, s.Client(t, patiently))
		if v.clock = clock; clock != nil {
			v.settle, faults = clock.settle, append(faults, clock.jumps(2*time.Second)...) // longer than its leases
		}
		for _, f := range faults {
			if slices.Contains(m.Faults, f.Name) {
				v.faults = append(v.faults, f)
			}
		}
		return v
	}
}

// mutantServer is a server whose clock jumps, where that is wanted; else its clock is nil.
func mutantServer(t *testing.T, jumps bool) (*testenv.RedisServer, *jumper) {
	t.Helper()
	if !jumps {
		return testenv.Redis(t, testenv.Private()), nil
	}
	clock := testenv.NewClock(t, 0)
	return testenv.Redis(t, testenv.OnClock(clock)), newServerJumper(t, clock)
}

// often has clients do much else than push, receive and acknowledge: a mutant's run is short.
func often(m *chaos.Mix) {
	m.Nack, m.Untouched, m.Extend, m.Dead, m.Abandon, m.Late = 0.05, 0.03, 0.05, 0.02, 0.03, 0.08
	m.Cancel, m.Reschedule, m.PushAgain = 0.05, 0.03, 0.02
	m.Delay = 500 * time.Millisecond
	m.Leases = []time.Duration{300 * time.Millisecond, 700 * time.Millisecond}
}
