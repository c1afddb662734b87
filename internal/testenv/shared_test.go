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

func TestSharedStartsOnce(t *testing.T) {
	starts, stops := 0, 0
	s := shared[int]{start: func() (int, func() error, error) {
		starts++
		return starts, func() error { stops++; return nil }, nil
	}}
	must(t, s.end()) // it has not been asked for
	if a, b := s.get(t), s.get(t); a != 1 || b != 1 {
		t.Errorf("got %d, then %d", a, b)
	}
	must(t, s.end())
	if starts != 1 || stops != 1 {
		t.Errorf("%d starts, %d stops", starts, stops)
	}
}

func TestSharedStartFails(t *testing.T) {
	s := shared[int]{start: func() (int, func() error, error) { return 0, nil, errors.New("broken") }}
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
