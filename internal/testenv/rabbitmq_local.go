package testenv

import (
	"bytes"
	"crypto/rand"
	"errors"
	"fmt"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

const rabbitUserName = "delayq"

// localRabbit is a broker in a directory of its own, with the settings to start it again.
type localRabbit struct {
	dir, node  string
	secrets    rabbitSecrets
	set        rabbitSettings
	port, dist int
	epmd       *epmd
	process    *process
}

// rabbitSecrets keep a broker and its tools to themselves. The password distinguishes this broker
// from others, and the cookie admits nodes to the cluster.
type rabbitSecrets struct{ password, cookie string }

func newRabbitSecrets() rabbitSecrets { return rabbitSecrets{rand.Text(), rand.Text()} }

func launchRabbit(set rabbitSettings) (*runningRabbit, error) {
	e, err := startEpmd()
	if err != nil {
		return nil, err
	}
	r, err := newLocalRabbit(e, newRabbitSecrets(), set)
	if err != nil {
		return nil, errors.Join(err, e.remove())
	}
	stop := func() error { return errors.Join(r.remove(), e.remove()) }
	if err := retryPorts(r.startAnew); err != nil {
		return nil, errors.Join(err, stop())
	}
	return &runningRabbit{url: r.url(), control: r, local: r, stop: stop}, nil
}

// newLocalRabbit prepares a broker that has not been started.
func newLocalRabbit(e *epmd, secrets rabbitSecrets, set rabbitSettings) (*localRabbit, error) {
	dir, err := os.MkdirTemp("", "delayq-rabbitmq-")
	if err != nil {
		return nil, fmt.Errorf("making a directory for rabbitmq-server: %w", err)
	}
	set.config = slices.Clip(set.config) // each node adds its own
	r := &localRabbit{dir: dir, secrets: secrets, set: set, epmd: e}
	if err = r.takePorts(); err == nil {
		err = os.WriteFile(r.file(".erlang.cookie"), []byte(secrets.cookie), 0o400)
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("preparing rabbitmq-server: %w", err), os.RemoveAll(dir))
	}
	return r, nil
}

func (r *localRabbit) takePorts() (err error) {
	if r.port, err = freePort(); err != nil {
		return err
	}
	r.dist, err = freePort()
	r.node = fmt.Sprintf("delayq%d@localhost", r.port)
	return err
}

// startAnew starts a broker that has no data yet, on other ports than those that were taken.
func (r *localRabbit) startAnew() error {
	err := r.start()
	if errors.Is(err, errPortTaken) {
		return errors.Join(err, r.takePorts())
	}
	return err
}

// start returns when the broker takes connections.
func (r *localRabbit) start() error {
	if err := r.spawn(); err != nil {
		return err
	}
	return r.awaitReady()
}

func (r *localRabbit) spawn() error {
	if err := r.configure(); err != nil {
		return fmt.Errorf("configuring rabbitmq-server: %w", err)
	}
	cmd := exec.Command(findRabbit("rabbitmq-server"))
	cmd.Env, cmd.Dir = r.env(), r.dir
	p, err := startProcess(cmd, r.file("rabbitmq.log"))
	if err != nil {
		return err
	}
	r.process = p
	return nil
}

func (r *localRabbit) awaitReady() error {
	err := r.awaitAnswer()
	if err == nil {
		return nil
	}
	err = errors.Join(err, r.process.kill())
	log := r.complaint()
	if strings.Contains(log, "eaddrinuse") || strings.Contains(log, "dist_port_already_used") {
		err = errors.Join(errPortTaken, err)
	}
	return fmt.Errorf("starting rabbitmq-server on port %d: %w\nFrom its log:\n%s", r.port, err, log)
}

// complaint returns the broker's log from its first error on: pages of consequences follow the
// cause.
func (r *localRabbit) complaint() string {
	const most = 4000
	log, err := os.ReadFile(r.process.log)
	if err != nil {
		return err.Error()
	}
	log = log[min(int(r.process.from), len(log)):]
	if first := bytes.Index(log, []byte("[error]")); first >= 0 {
		return string(log[first:min(first+most, len(log))])
	}
	return r.process.tail()
}

// awaitAnswer waits longer than for other servers: a broker starts with seconds of work for the
// processor, and more of them on a busy machine.
func (r *localRabbit) awaitAnswer() (err error) {
	for range 6 {
		if err = await("rabbitmq-server to reply", r.isUp); err == nil || r.process.ended() {
			return err
		}
	}
	return err
}

// isUp is the condition to await. Only our broker knows the password.
func (r *localRabbit) isUp() (final bool, err error) {
	if r.process.ended() {
		return true, errors.New("it has ended")
	}
	if err = greet(r.url(), 5*time.Second); err != nil {
		time.Sleep(20 * time.Millisecond) // leaves the processor to the broker
	}
	return false, err
}

func (r *localRabbit) configure() error {
	return errors.Join(
		os.WriteFile(r.file("rabbitmq.conf"), []byte(r.config()), 0o600),
		os.WriteFile(r.file("advanced.config"), []byte(r.set.advancedText()), 0o600),
		os.WriteFile(r.file("plugins"), []byte("["+strings.Join(r.set.plugins, ",")+"].\n"), 0o600),
	)
}

func (r *localRabbit) config() string {
	var own rabbitSettings
	own.add("listeners.tcp.1", r.addr())
	own.add("default_user", rabbitUserName)
	own.add("default_pass", r.secrets.password)
	own.add("log.console", "true")
	own.add("log.file", "false")
	return own.text() + r.set.text()
}

func (r *localRabbit) file(name string) string { return filepath.Join(r.dir, name) }

func (r *localRabbit) addr() string { return address(r.port) }

func (r *localRabbit) url() string {
	u := url.URL{Scheme: "amqp", User: url.UserPassword(rabbitUserName, r.secrets.password), Host: r.addr(), Path: "/"}
	return u.String()
}

func (r *localRabbit) restart() error {
	if err := r.process.stop(); err != nil {
		return err
	}
	return r.start()
}

// remove ends the broker and forgets its data.
func (r *localRabbit) remove() error {
	if r.process != nil {
		if err := r.process.kill(); err != nil {
			return err
		}
	}
	return os.RemoveAll(r.dir)
}
