package testenv

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

// localRedis is a redis-server in a directory of its own, with the settings to start it again.
type localRedis struct {
	binary, dir string
	set         settings
	port, bus   int
	process     *process
}

var errPortTaken = errors.New("another process took the port")

func launchRedis(binary string, set settings) (*runningRedis, error) {
	r, err := launchLocal(binary, set)
	if err != nil {
		return nil, err
	}
	return &runningRedis{url: r.url(), local: r, stop: r.remove}, nil
}

func launchLocal(binary string, set settings) (*localRedis, error) {
	dir, err := os.MkdirTemp("", "delayq-redis-")
	if err != nil {
		return nil, fmt.Errorf("making a directory for redis-server: %w", err)
	}
	r := &localRedis{binary: binary, dir: dir, set: set}
	for range 10 {
		if err = r.takePorts(); err == nil {
			err = r.start()
		}
		if !errors.Is(err, errPortTaken) {
			break
		}
	}
	if err != nil {
		return nil, errors.Join(err, os.RemoveAll(dir))
	}
	return r, nil
}

func (r *localRedis) takePorts() (err error) {
	if r.port, err = freePort(); err != nil {
		return err
	}
	r.bus, err = freePort()
	return err
}

// start returns when the server accepts commands.
func (r *localRedis) start() error {
	file := filepath.Join(r.dir, "redis.conf")
	if err := os.WriteFile(file, []byte(r.config()), 0o600); err != nil {
		return fmt.Errorf("configuring redis-server: %w", err)
	}
	cmd := exec.Command(r.binary, file)
	cmd.Env = r.set.environment()
	p, err := startProcess(cmd, filepath.Join(r.dir, "redis.log"))
	if err != nil {
		return err
	}
	r.process = p
	err = await("redis-server to reply", r.isUp)
	if err == nil {
		return nil
	}
	err = errors.Join(err, p.kill())
	log := p.tail()
	if strings.Contains(log, "Address already in use") {
		err = errors.Join(errPortTaken, err)
	}
	return fmt.Errorf("starting redis-server on port %d: %w\nThe end of its log:\n%s", r.port, err, log)
}

func (r *localRedis) config() string {
	own := settings{}
	own.add("bind", localhost)
	own.add("port", strconv.Itoa(r.port))
	own.add("dir", r.dir)
	for _, d := range r.set.config {
		if d.name == "cluster-enabled" {
			own.add("cluster-port", strconv.Itoa(r.bus))
		}
	}
	return own.text() + r.set.text()
}

// isUp is the condition to await: the server on the port must be ours.
func (r *localRedis) isUp() (final bool, err error) {
	if r.process.ended() {
		return true, errors.New("it has ended")
	}
	pid, err := ping(r.addr())
	if err == nil && pid != r.process.pid {
		err = fmt.Errorf("process %d replies instead of %d", pid, r.process.pid)
	}
	return false, err
}

// ping returns the process id of a server that is ready to serve. It does without a client
// of Redis, which would wait longer after each failure.
func ping(addr string) (pid int, err error) {
	conn, err := net.DialTimeout("tcp", addr, time.Second)
	if err != nil {
		return 0, err
	}
	defer func() { _ = conn.Close() }()
	_ = conn.SetDeadline(time.Now().Add(time.Second)) // of an open connection this cannot fail
	if _, err = io.WriteString(conn, "PING\r\nINFO server\r\nQUIT\r\n"); err != nil {
		return 0, err
	}
	reply, err := io.ReadAll(conn)
	if err != nil {
		return 0, err
	}
	pong, info, _ := bytes.Cut(reply, []byte("\r\n"))
	if string(pong) != "+PONG" {
		return 0, fmt.Errorf("it says %q to a PING", pong)
	}
	_, info, _ = bytes.Cut(info, []byte("process_id:"))
	id, _, _ := bytes.Cut(info, []byte("\r\n"))
	return strconv.Atoi(string(id))
}

func (r *localRedis) addr() string { return address(r.port) }

func (r *localRedis) url() string { return "redis://" + r.addr() }

func (r *localRedis) restart() error {
	if err := r.process.stop(); err != nil {
		return err
	}
	return r.start()
}

// remove ends the server and forgets its data.
func (r *localRedis) remove() error {
	if err := r.process.kill(); err != nil {
		return err
	}
	return os.RemoveAll(r.dir)
}
