package testenv

import (
	"errors"
	"fmt"
	"strings"
	"testing"
)

func TestCheckRequire(t *testing.T) {
	for list, unknown := range map[string]string{
		"":               "",
		"redis":          "",
		" redis , redis": "",
		"redis,java":     "",
		"rabbitmq":       "",
		",":              "",
		"reddis":         `"reddis"`,
		"rabbit":         `"rabbit"`,
		"redis,Redis":    `"Redis"`,
		"redis redis":    `"redis redis"`,
	} {
		err := checkRequire(list)
		if unknown == "" {
			must(t, err)
		} else if err == nil || !strings.Contains(err.Error(), unknown) {
			t.Errorf("checkRequire(%q) = %v; want an error that names %s", list, err, unknown)
		}
	}
}

func TestSkips(t *testing.T) {
	missing := &absentError{"redis", "install it"}
	for _, c := range []struct {
		list string
		err  error
		want bool
	}{
		{"", missing, true},
		{"", fmt.Errorf("starting: %w", missing), true},
		{"other", missing, true},
		{"java", missing, true},
		{"redis", missing, false},
		{"redis,java", missing, false},
		{"other, redis", missing, false},
		{"", errors.New("it crashed"), false},
		{"redis", errors.New("it crashed"), false},
	} {
		if got := skips(c.list, c.err); got != c.want {
			t.Errorf("skips(%q, %v) = %v", c.list, c.err, got)
		}
	}
}

func TestNoJava(t *testing.T) {
	t.Setenv("PATH", t.TempDir())
	t.Setenv("JAVA_HOME", "")
	for required, fails := range map[string]bool{"": false, "redis": false, "redis,java": true} {
		t.Setenv("DELAYQ_REQUIRE", required)
		for what, find := range map[string]func() (string, error){"java": Java, "mvn": Maven} {
			_, err := find()
			r := record(t, func(tb testing.TB) { Require(tb, err) })
			if (r.failed != "") != fails || !strings.Contains(r.failed+r.skipped, "default-jdk-headless maven") {
				t.Errorf("no %s with DELAYQ_REQUIRE=%s: %+v", what, required, r)
			}
		}
	}
}
