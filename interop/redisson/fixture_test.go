package interop

import (
	"context"
	"fmt"
	"reflect"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/delayq/delayq/internal/redis/redistest"
	"github.com/delayq/delayq/internal/testenv"
)

// fixture is a JVM that other tests share, and the server it is connected to.
type fixture struct {
	*testing.T
	jvm    *JVM
	server *testenv.RedisServer
	redis  *redis.Client
}

// patience is how long a test waits for a reply: some send 15 MB in one pipeline, for each release at
// the same time, to one server.
const patience = time.Minute

// eachVersion runs a test for each release of Redisson, in parallel with all others. It belongs to
// testenv.All, since it needs Java.
func eachVersion(t *testing.T, test func(ctx context.Context, f fixture)) {
	t.Helper()
	testenv.In(t, testenv.All)
	for _, version := range Versions() {
		jvms.hold(t, version)
	}
	t.Parallel()
	for _, version := range Versions() {
		t.Run(version, func(t *testing.T) {
			t.Parallel()
			server := testenv.SharedRedis(t)
			jvm := attach(t, jvms.get(t, version, server.URL()), true)
			client := server.Client(t, func(o *redis.Options) { o.ReadTimeout, o.WriteTimeout = patience, patience })
			test(testContext(t), fixture{t, jvm, server, client})
		})
	}
}

var queueNumber atomic.Int64

// name returns a name that no other queue has. Its keys are deleted when the test ends.
func (f fixture) name() string {
	f.Helper()
	name := fmt.Sprintf("interop-%d-%d", time.Now().UnixNano(), queueNumber.Add(1))
	f.Cleanup(func() { redistest.Wipe(f, f.redis, "*"+name+"*") }) // Go's keys among them
	return name
}

// queue returns a queue that no other test uses. This JVM lets go of it when the test ends.
func (f fixture) queue(opts ...QueueOption) *Queue {
	f.Helper()
	q := f.jvm.Queue(f.name(), opts...)
	f.Cleanup(func() {
		if err := q.Destroy(context.Background()); err != nil {
			f.Errorf("destroying the queue %s: %v", q.Name(), err)
		}
	})
	return q
}

// is compares a call's result.
func (f fixture) is(value any, err error) func(want any) {
	return func(want any) {
		f.Helper()
		must(f.T, err)
		if !reflect.DeepEqual(value, want) {
			f.Errorf("got %v; want %v", value, want)
		}
	}
}

// keys are Redisson's keys of a queue.
type keys struct{ ready, due, index, channel string }

func keysOf(name string) keys {
	tagged := ":{" + name + "}"
	if strings.Contains(name, "{") {
		tagged = ":" + name
	}
	return keys{
		ready: name, due: "redisson_delay_queue_timeout" + tagged,
		index: "redisson_delay_queue" + tagged, channel: "redisson_delay_queue_channel" + tagged,
	}
}

func (k keys) all() []string { return []string{k.ready, k.due, k.index} }

// jvms are shared by the tests that hold them: a JVM starts when it is first asked for, and ends
// with the last test that holds it. Tests hold before they become parallel, so that it is the last
// of all.
var jvms = pool{slots: map[string]*slot{}}

type pool struct {
	mu    sync.Mutex
	slots map[string]*slot
}

type slot struct {
	holders int
	once    sync.Once
	process *process
	err     error
}

func (p *pool) hold(t *testing.T, version string) {
	t.Helper()
	p.mu.Lock()
	defer p.mu.Unlock()
	s := p.slots[version]
	if s == nil {
		s = &slot{}
		p.slots[version] = s
	}
	s.holders++
	t.Cleanup(func() { p.release(t, version) })
}

func (p *pool) release(t *testing.T, version string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	s := p.slots[version]
	s.holders--
	if s.holders > 0 {
		return
	}
	delete(p.slots, version)
	if s.process != nil && s.err == nil {
		must(t, s.process.remove())
	}
}

func (p *pool) get(t *testing.T, version, addr string) *process {
	t.Helper()
	p.mu.Lock()
	s := p.slots[version]
	p.mu.Unlock()
	s.once.Do(func() { s.process, s.err = launch(version, addr, settings{}) })
	testenv.Require(t, s.err)
	return s.process
}
