package testenv

import (
	"context"
	"errors"
	"net"
	"slices"
	"syscall"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
)

// through is a client of the server on the other side of the proxy.
func through(t *testing.T, p *FaultProxy, tune func(*redis.Options)) *redis.Client {
	t.Helper()
	return SharedRedis(t).Client(t, tune, func(opt *redis.Options) { opt.Addr = p.Addr() })
}

func proxied(t *testing.T) *FaultProxy {
	t.Helper()
	return Proxy(t, SharedRedis(t).Addr())
}

func TestProxyPassesOn(t *testing.T) {
	ctx := context.Background()
	p := proxied(t)
	client := through(t, p, oneTry)
	big := string(make([]byte, 5<<20))
	must(t, client.Set(ctx, t.Name(), big, 0).Err())
	if got, err := client.Get(ctx, t.Name()).Result(); got != big || err != nil {
		t.Errorf("%d bytes came back, %v; want %d", len(got), err, len(big))
	}
	must(t, client.Del(ctx, t.Name()).Err())
	if p.Connections() != 1 || p.Cuts() != 0 {
		t.Errorf("%d connections, %d cuts", p.Connections(), p.Cuts())
	}
}

func TestCutRepliesHaveBeenExecuted(t *testing.T) {
	ctx := context.Background()
	p := proxied(t)
	client, direct := through(t, p, oneTry), SharedRedis(t).Client(t)
	must(t, direct.Del(ctx, t.Name()).Err())
	p.CutReplies(0.2)
	const tries = 500
	acked := 0
	for range tries {
		if client.Incr(ctx, t.Name()).Err() == nil {
			acked++
		}
	}
	executed, err := direct.Get(ctx, t.Name()).Int()
	must(t, err)
	if acked >= executed || executed > tries {
		t.Errorf("%d of %d tries were acknowledged, %d executed; want more executed than acknowledged", acked, tries, executed)
	}
	if p.Cuts() < executed-acked || p.Connections() <= 1 {
		t.Errorf("%d cuts on %d connections for %d lost replies", p.Cuts(), p.Connections(), executed-acked)
	}
	p.CutReplies(0)
	mustPing(t, through(t, p, oneTry))
}

func TestCutsFollowTheSeed(t *testing.T) {
	runs := map[uint64][]int{}
	for _, seed := range []uint64{1, 2, 1} {
		p := proxied(t)
		p.Seed(seed)
		p.CutReplies(0.1)
		var served []int
		for range 20 {
			served = append(served, repliesUntilCut(t, p))
		}
		if before, again := runs[seed]; again && !slices.Equal(before, served) {
			t.Errorf("seed %d: %v, then %v", seed, before, served)
		}
		runs[seed] = served
	}
	if slices.Equal(runs[1], runs[2]) {
		t.Errorf("two seeds give the same cuts: %v", runs[1])
	}
}

func repliesUntilCut(t *testing.T, p *FaultProxy) int {
	t.Helper()
	conn := dialProxy(t, p)
	for n := 0; ; n++ {
		_, err := conn.Write([]byte("PING\r\n"))
		must(t, err)
		if _, err = conn.Read(make([]byte, 16)); err != nil {
			return n
		}
	}
}

func dialProxy(t *testing.T, p *FaultProxy) net.Conn {
	t.Helper()
	conn, err := net.Dial("tcp", p.Addr())
	must(t, err)
	t.Cleanup(func() { _ = conn.Close() })
	must(t, conn.SetDeadline(time.Now().Add(patience)))
	return conn
}

func TestLatencyDoesNotAddUp(t *testing.T) {
	const latency, commands = 100 * time.Millisecond, 200
	p := proxied(t)
	conn := dialProxy(t, p)
	p.Latency(latency)
	began := time.Now()
	for range commands { // one packet each, so that there are many replies on the way at once
		_, err := conn.Write([]byte("PING\r\n"))
		must(t, err)
	}
	buf := make([]byte, 1<<10)
	for got := 0; got < commands*len("+PONG\r\n"); {
		n, err := conn.Read(buf)
		must(t, err)
		if took := time.Since(began); got == 0 && took < latency {
			t.Errorf("the first reply came after %v", took)
		}
		got += n
	}
	if took := time.Since(began); took > commands*latency/2 {
		t.Errorf("%d replies took %v", commands, took)
	}
}

func TestBlackholeTimesOut(t *testing.T) {
	ctx := context.Background()
	p := proxied(t)
	client := through(t, p, hasty)
	kept := dialProxy(t, p)
	must(t, SharedRedis(t).Client(t).Set(ctx, t.Name(), 0, 0).Err())
	p.Blackhole(true)
	var timeout net.Error
	if err := client.Incr(ctx, t.Name()).Err(); !errors.As(err, &timeout) || !timeout.Timeout() {
		t.Errorf("a black hole gives %v; want a timeout", err)
	}
	p.Blackhole(false)
	patient := through(t, p, oneTry)
	if n, err := patient.Get(ctx, t.Name()).Int(); n != 0 || err != nil {
		t.Errorf("dropped bytes came out again: %d, %v", n, err)
	}
	_, err := kept.Write([]byte("PING\r\n"))
	must(t, err)
	if n, err := kept.Read(make([]byte, 16)); n != len("+PONG\r\n") || err != nil {
		t.Errorf("a connection that lost nothing gives %d bytes, %v", n, err)
	}
}

func TestBlackholeCutsConnectionsThatLostBytes(t *testing.T) {
	p := proxied(t)
	conn := dialProxy(t, p)
	p.Blackhole(true)
	_, err := conn.Write([]byte("PING\r\n"))
	must(t, err)
	must(t, await("the hole to swallow", func() (bool, error) {
		p.mu.Lock()
		defer p.mu.Unlock()
		for l := range p.links {
			if l.robbed {
				return false, nil
			}
		}
		return false, errors.New("nothing yet")
	}))
	p.Blackhole(false)
	if n, err := conn.Read(make([]byte, 16)); n != 0 || err == nil || errors.Is(err, syscall.ETIMEDOUT) {
		t.Errorf("got %d bytes, %v; want the end of the connection", n, err)
	}
}

func TestCloseAllCutsConnections(t *testing.T) {
	p := proxied(t)
	a, b := dialProxy(t, p), dialProxy(t, p)
	must(t, await("both connections", func() (bool, error) {
		if n := p.Connections(); n != 2 {
			return false, errors.New("not yet")
		}
		return false, nil
	}))
	p.CloseAll()
	for _, conn := range []net.Conn{a, b} {
		var timeout net.Error
		if _, err := conn.Read(make([]byte, 1)); err == nil || errors.As(err, &timeout) && timeout.Timeout() {
			t.Errorf("an open connection gives %v", err)
		}
	}
	mustPing(t, through(t, p, oneTry))
}

func TestRefuseRejectsNewConnections(t *testing.T) {
	p := proxied(t)
	kept := through(t, p, oneTry)
	mustPing(t, kept)
	p.Refuse(true)
	p.Refuse(true)
	if err := through(t, p, oneTry).Ping(context.Background()).Err(); !errors.Is(err, syscall.ECONNREFUSED) {
		t.Errorf("a proxy that refuses gives %v", err)
	}
	mustPing(t, kept)
	p.Refuse(false)
	p.Refuse(false)
	mustPing(t, through(t, p, oneTry))
}

func TestProxyWithoutServer(t *testing.T) {
	port, err := freePort()
	must(t, err)
	conn := dialProxy(t, Proxy(t, address(port)))
	var timeout net.Error
	if _, err := conn.Read(make([]byte, 1)); err == nil || errors.As(err, &timeout) && timeout.Timeout() {
		t.Errorf("no server gives %v; want the end of the connection", err)
	}
}
