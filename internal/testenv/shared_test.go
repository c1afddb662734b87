package testenv

import (
	"errors"
	"strings"
	"testing"
)

func TestSharedRedis(t *testing.T) {
	var first, second *RedisServer
	t.Run("first", func(t *testing.T) { first = SharedRedis(t); mustPing(t, first.Client(t)) })
	t.Run("second", func(t *testing.T) { second = SharedRedis(t); mustPing(t, second.Client(t)) })
	if first.URL() != second.URL() {
		t.Errorf("two servers: %s and %s", first.URL(), second.URL())
	}
	r := record(t, func(tb testing.TB) { SharedRedis(tb).Kill() })
	if !strings.Contains(r.failed, "not this test's own") {
		t.Errorf("killing the shared server ended with %q, %q", r.failed, r.skipped)
	}
}

// counted counts its ends.
type counted struct{ ends int }

func (c *counted) remove() error { c.ends++; return nil } //nolint:unparam // what shared calls

func TestSharedStartsOnce(t *testing.T) {
	starts := 0
	s := shared[*counted]{start: func() (*counted, error) { starts++; return new(counted), nil }}
	must(t, s.end()) // no test has asked for it
	first, second := s.get(t), s.get(t)
	must(t, s.end())
	if first != second || starts != 1 || first.ends != 1 {
		t.Errorf("%d starts, %d ends, the same %v", starts, first.ends, first == second)
	}
}

func TestSharedStartFails(t *testing.T) {
	s := shared[*counted]{start: func() (*counted, error) { return nil, errors.New("broken") }}
	for range 2 {
		if r := record(t, func(tb testing.TB) { s.get(tb) }); !strings.Contains(r.failed, "broken") {
			t.Errorf("failed with %q", r.failed)
		}
	}
	must(t, s.end())
}

func TestSharedNeedsMain(t *testing.T) {
	mainRuns.Store(false)
	defer mainRuns.Store(true)
	r := record(t, func(tb testing.TB) { SharedRedis(tb) })
	if !strings.Contains(r.failed, "testenv.Main(m)") {
		t.Errorf("failed with %q", r.failed)
	}
}
