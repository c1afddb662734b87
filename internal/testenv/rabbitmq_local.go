package testenv

import (
	"crypto/rand"
	"errors"
	"fmt"
	"net/url"
	"os"
	"os/exec"
	"slices"
	"strings"
	"time"
)

const rabbitUserName = "delayq"

// localRabbit is a broker with the settings to start it again.
type localRabbit struct {
	local
	node    string
	secrets rabbitSecrets
	set     rabbitSettings
	dist    int
	epmd    *epmd
}

// rabbitSecrets keep a broker and its tools to themselves. The password distinguishes this broker
// from others, and the cookie admits nodes to the cluster.
type rabbitSecrets struct{ password, cookie string }

func newRabbitSecrets() rabbitSecrets { return rabbitSecrets{rand.Text(), rand.Text()} }

func launchRabbit(set rabbitSettings) (*running, error) {
	e, err := startEpmd()
	if err != nil {
		return nil, err
	}
	r, err := newLocalRabbit(e, newRabbitSecrets(), set)
	if err != nil {
		return nil, errors.Join(err, e.remove())
	}
	if err := r.launch(r.startEmpty); err != nil {
		return nil, errors.Join(err, e.remove())
	}
	stop := func() error { return errors.Join(r.remove(), e.remove()) }
	return &running{url: r.url(), control: r, server: r, stop: stop}, nil
}

// newLocalRabbit prepares a broker that has not been started.
func newLocalRabbit(e *epmd, secrets rabbitSecrets, set rabbitSettings) (*localRabbit, error) {
	l, err := newLocal("rabbitmq-server")
	if err != nil {
		return nil, err
	}
	set.config = slices.Clip(set.config) // each node adds its own
	r := &localRabbit{local: l, secrets: secrets, set: set, epmd: e}
	if err = r.takePorts(); err == nil {
		err = os.WriteFile(r.file(".erlang.cookie"), []byte(secrets.cookie), 0o400)
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("preparing rabbitmq-server: %w", err), r.remove())
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

// startEmpty starts a broker that has no data yet, on other ports than those that were taken.
func (r *localRabbit) startEmpty() error {
	err := r.start()
	if errors.Is(err, errPortTaken) {
		return errors.Join(err, r.takePorts())
	}
	return err
}

// start returns when the broker takes connections.
func (r *localRabbit) start() error {
	if err := r.begin(); err != nil {
		return err
	}
	return r.awaitReady()
}

func (r *localRabbit) begin() error {
	var own rabbitSettings
	own.add("listeners.tcp.1", r.addr())
	own.add("default_user", rabbitUserName)
	own.add("default_pass", r.secrets.password)
	own.add("handshake_timeout", "120000") // in ms: a busy broker ends a login after 10 s by default, which looks like a wrong password
	own.add("log.console", "true")
	own.add("log.file", "false")
	if err := errors.Join(
		os.WriteFile(r.file("rabbitmq.conf"), []byte(own.text()+r.set.text()), 0o600),
		os.WriteFile(r.file("advanced.config"), []byte(r.set.advancedText()), 0o600),
		os.WriteFile(r.file("plugins"), []byte("["+strings.Join(r.set.plugins, ",")+"].\n"), 0o600),
	); err != nil {
		return fmt.Errorf("configuring rabbitmq-server: %w", err)
	}
	cmd := exec.Command(findRabbit("rabbitmq-server"))
	cmd.Env, cmd.Dir = r.env(), r.dir
	return r.spawn(cmd)
}

// awaitReady waits longer than for other servers: a broker starts with seconds of work for the
// processor, and more of them on a busy machine. Only our broker knows the password.
func (r *localRabbit) awaitReady() error {
	return r.awaitUp(6*patience, func() error {
		err := greet(r.url(), 5*time.Second)
		if err != nil {
			time.Sleep(20 * time.Millisecond) // leaves the processor to the broker
		}
		return err
	}, "eaddrinuse", "dist_port_already_used")
}

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
