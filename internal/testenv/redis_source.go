package testenv

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"

	"github.com/redis/go-redis/v9"
)

const redisURLVar = "DELAYQ_REDIS_URL"

// redisSource is where a Redis server comes from.
type redisSource int

const (
	redisNowhere redisSource = iota
	redisFromURL
	redisFromBinary
	redisFromDocker
)

// chooseRedis applies the order that the package promises. Docker is asked last, since asking takes
// time.
func chooseRedis(url, binary string, docker func() error, private, options bool) redisSource {
	switch {
	case url != "" && !private && !options:
		return redisFromURL
	case binary != "":
		return redisFromBinary
	case !private && docker() == nil:
		return redisFromDocker
	}
	return redisNowhere
}

// runningRedis is a server that runs already.
type runningRedis struct {
	url   string
	local *localRedis // nil when it is no process of ours
	stop  func() error
}

func provideRedis(opts []Option) (*runningRedis, error) {
	if err := checkRequire(os.Getenv(requireVar)); err != nil {
		return nil, err
	}
	set := settle(opts)
	url, binary := os.Getenv(redisURLVar), findServer("redis-server")
	switch chooseRedis(url, binary, dockerRuns, set.private, len(opts) > 0) {
	case redisFromURL:
		return useRedis(url)
	case redisFromBinary:
		return launchRedis(binary, set)
	case redisFromDocker:
		return dockerRedis(set)
	default:
		return nil, noRedis(set.private)
	}
}

func noRedis(private bool) error {
	if private {
		return &absentError{"redis", "this test starts and stops its own: install redis-server (on Debian: apt-get install redis-server)"}
	}
	return &absentError{"redis", "install redis-server (on Debian: apt-get install redis-server), set " +
		redisURLVar + "=redis://localhost:6379/15, or start Docker"}
}

// useRedis checks that the server that the URL names can be reached. A URL that is set must be
// usable.
func useRedis(url string) (*runningRedis, error) {
	opt, err := redis.ParseURL(url)
	if err != nil {
		return nil, fmt.Errorf("parsing %s: %w", redisURLVar, err)
	}
	client := redis.NewClient(opt)
	defer func() { _ = client.Close() }()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	if err := client.Ping(ctx).Err(); err != nil {
		return nil, fmt.Errorf("asking the server of %s: %w", redisURLVar, err)
	}
	return &runningRedis{url: url, stop: func() error { return nil }}, nil
}

// findServer also searches outside the PATH, since servers are often installed in root's
// directories.
func findServer(name string) string {
	if path, err := exec.LookPath(name); err == nil {
		return path
	}
	for _, dir := range []string{"/usr/sbin", "/usr/local/bin", "/usr/bin"} {
		if path, err := exec.LookPath(filepath.Join(dir, name)); err == nil {
			return path
		}
	}
	return ""
}
