package testenv

import (
	"fmt"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"
)

const (
	rabbitURLVar     = "DELAYQ_RABBITMQ_URL"
	rabbitScriptsVar = "DELAYQ_RABBITMQ_SCRIPTS"
)

// runningRabbit is a broker that runs already.
type runningRabbit struct {
	url     string
	control rabbitControl // nil when it takes no orders
	local   *localRabbit  // nil when it is no process of ours
	stop    func() error
}

func provideRabbit(set rabbitSettings) (*runningRabbit, error) {
	if err := checkRequire(os.Getenv(requireVar)); err != nil {
		return nil, err
	}
	url, binary := os.Getenv(rabbitURLVar), findRabbit("rabbitmq-server")
	switch chooseRedis(url, binary, dockerRuns, set.private, set.special()) {
	case redisFromURL:
		return useRabbit(url)
	case redisFromBinary:
		return launchRabbit(set)
	case redisFromDocker:
		return dockerRabbit(set)
	default:
		return nil, noRabbit(set.private)
	}
}

func noRabbit(private bool) error {
	if private {
		return &absentError{"rabbitmq", "this test starts and stops its own: install rabbitmq-server (on Debian: apt-get install rabbitmq-server)"}
	}
	return &absentError{"rabbitmq", "install rabbitmq-server (on Debian: apt-get install rabbitmq-server), set " +
		rabbitURLVar + "=amqp://guest:guest@localhost:5672/vhost, or start Docker"}
}

// useRabbit checks that the broker that the URL names can be reached. A URL that is set must be
// usable.
func useRabbit(url string) (*runningRabbit, error) {
	if _, err := amqp.ParseURI(url); err != nil {
		return nil, fmt.Errorf("parsing %s: %w", rabbitURLVar, err)
	}
	if err := greet(url, patience); err != nil {
		return nil, fmt.Errorf("asking the broker of %s: %w", rabbitURLVar, err)
	}
	return &runningRabbit{url: url, stop: func() error { return nil }}, nil
}

// greet returns nil when the broker opens a connection.
func greet(url string, timeout time.Duration) error {
	conn, err := amqp.DialConfig(url, amqp.Config{Dial: amqp.DefaultDial(timeout)})
	if err != nil {
		return err
	}
	return conn.Close()
}

func vhostOf(u *url.URL) string {
	if name := strings.TrimPrefix(u.Path, "/"); name != "" {
		return name
	}
	return "/"
}

func userOf(u *url.URL) string { return u.User.Username() }

// findRabbit passes over Debian's wrapper on the PATH, which runs the script as the user of the
// system's own broker. Another directory may be named, for a broker of another version.
func findRabbit(script string) string {
	for _, dir := range []string{os.Getenv(rabbitScriptsVar), "/usr/lib/rabbitmq/bin"} {
		if path, err := exec.LookPath(filepath.Join(dir, script)); dir != "" && err == nil {
			return path
		}
	}
	return findServer(script)
}
