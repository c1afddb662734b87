package interop

import (
	"context"
	"errors"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/delayq/delayq/internal/testenv"
)

const newest = "4.7.0"

func TestKill(t *testing.T) {
	testenv.In(t, testenv.All)
	t.Parallel()
	ctx := testContext(t)
	jvm := Start(t, newest, testenv.Redis(t).Addr())
	q := jvm.Queue("orders")
	consumer := got(q.Consume(ctx, 2))(t)
	taken := make(chan error, 1)
	go func() {
		_, err := q.Take(ctx, time.Minute)
		taken <- err
	}()
	jvm.Kill()
	jvm.Kill() // that it is dead already does no harm
	if err := <-taken; !errors.Is(err, ErrEnded) {
		t.Errorf("a call that waited gives %v", err)
	}
	if _, err := consumer.Next(ctx); !errors.Is(err, ErrEnded) {
		t.Errorf("a consumer gives %v", err)
	}
	if _, err := jvm.Clock(ctx); !errors.Is(err, ErrEnded) {
		t.Errorf("a new call gives %v", err)
	}
}

func TestPauseAndResume(t *testing.T) {
	testenv.In(t, testenv.All)
	t.Parallel()
	ctx := testContext(t)
	jvm := Start(t, newest, testenv.Redis(t).Addr())
	jvm.Pause()
	short, cancel := context.WithTimeout(ctx, 50*time.Millisecond)
	defer cancel()
	if _, err := jvm.Clock(short); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("a paused JVM gives %v", err)
	}
	jvm.Resume()
	if _, err := jvm.Clock(ctx); err != nil {
		t.Errorf("a resumed JVM gives %v", err)
	}
}

func TestShutdown(t *testing.T) {
	testenv.In(t, testenv.All)
	t.Parallel()
	ctx := testContext(t)
	jvm := Start(t, newest, testenv.Redis(t).Addr())
	q := jvm.Queue("orders")
	must(t, q.Hold(ctx))
	must(t, jvm.Shutdown(ctx))
	var exception *JavaError
	if err := q.Offer(ctx, "too late", time.Second); !errors.As(err, &exception) {
		t.Errorf("an offer after the end gives %v", err)
	}
	if _, err := jvm.Clock(ctx); err != nil {
		t.Errorf("the process does not live on: %v", err)
	}
}

func TestFailedStartShowsTheLog(t *testing.T) {
	testenv.In(t, testenv.All)
	t.Parallel()
	p, err := launch(newest, "redis://localhost:1/no-number", settings{})
	if err == nil || !strings.Contains(err.Error(), "NumberFormatException") {
		t.Fatalf("starting with a bad address gives %v", err)
	}
	if _, err := os.Stat(p.dir); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("its directory is still there: %v", err)
	}
}

func TestTwoProcesses(t *testing.T) {
	testenv.In(t, testenv.All)
	t.Parallel()
	ctx := testContext(t)
	server := testenv.Redis(t)
	ours := Start(t, "3.52.0", server.URL()).Queue("orders")
	theirs := Start(t, newest, server.URL()).Queue("orders")
	must(t, ours.Offer(ctx, "for the other", time.Hour))
	if value := got(theirs.Poll(ctx))(t); value != "for the other" {
		t.Errorf("the other one gets %v", value)
	}
	if n := got(ours.Size(ctx))(t); n != 0 {
		t.Errorf("%d values are left", n)
	}
}

func TestCluster(t *testing.T) {
	testenv.In(t, testenv.All)
	t.Parallel()
	ctx := testContext(t)
	cluster := testenv.SharedRedisCluster(t)
	jvm := Start(t, newest, cluster.Addrs()[0], Cluster())
	for _, name := range []string{"a", "b", "c", "{tag}:d"} {
		q := jvm.Queue(name, WithCodec(String))
		must(t, q.Offer(ctx, "value of "+name, 20*time.Millisecond))
		if value := got(q.Take(ctx, 20*time.Second))(t); value != "value of "+name {
			t.Errorf("received %v from %s", value, name)
		}
	}
}

func TestSharedIsNotKilled(t *testing.T) {
	eachVersion(t, func(ctx context.Context, f fixture) {
		for name, end := range map[string]func(*JVM){"kill": (*JVM).Kill, "pause": (*JVM).Pause, "resume": (*JVM).Resume} {
			failed := &noted{TB: f.T}
			done := make(chan struct{})
			go func() {
				defer close(done)
				end(&JVM{tb: failed, process: f.jvm.process, shared: true})
			}()
			<-done
			if !strings.Contains(failed.how, "cannot "+name) {
				f.Errorf("%s of a shared JVM ended with %q", name, failed.how)
			}
		}
	})
}
