package testenv

import (
	"cmp"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
)

// RabbitPermissions are regular expressions for the names of the queues and exchanges that a user
// may configure, write to and read from. An empty one allows none.
type RabbitPermissions struct {
	Configure string `json:"configure"`
	Write     string `json:"write"`
	Read      string `json:"read"`
}

var vhosts atomic.Int64

// Vhost makes an empty vhost for tb, which is deleted when tb ends, with all connections to it.
// VhostURL is its URL. The broker of DELAYQ_RABBITMQ_URL gets no new vhosts: there it is the vhost
// of that URL, and tests must use names of their own.
func (s *RabbitServer) Vhost(tb testing.TB) string {
	tb.Helper()
	if s.control == nil {
		return cmp.Or(strings.TrimPrefix(s.parsed().Path, "/"), "/")
	}
	name := fmt.Sprintf("test-%d", vhosts.Add(1))
	mustControl(tb, "making a vhost", addVhost(s.control, s.parsed().User.Username(), name))
	if !s.Private() { // a private broker ends with the test, and may be dead by then
		tb.Cleanup(func() { mustControl(tb, "deleting a vhost", deleteVhost(s.control, name)) })
	}
	return name
}

// AddVhost makes a vhost in which the user of URL may do everything.
func (s *RabbitServer) AddVhost(name string) {
	s.tb.Helper()
	s.withControl("make a vhost", func(c rabbitControl) error { return addVhost(c, s.parsed().User.Username(), name) })
}

// AddUser makes a user, or changes an existing one, with permissions in one vhost; UserURL leads
// there.
func (s *RabbitServer) AddUser(name, password, vhost string, may RabbitPermissions) {
	s.tb.Helper()
	d := definitions{
		Users:       []rabbitUser{{Name: name, Password: password}},
		Permissions: []rabbitPermission{{User: name, Vhost: vhost, RabbitPermissions: may}},
	}
	s.withControl("add a user", d.importTo)
}

// CloseConnections makes the broker close all connections to a vhost, as an administrator would.
func (s *RabbitServer) CloseConnections(vhost string) {
	s.tb.Helper()
	s.Ctl("close_all_connections", "-p", vhost, "closed by the test")
}

// Ctl runs rabbitmqctl for this broker, about half a second, and returns its output.
func (s *RabbitServer) Ctl(args ...string) (out string) {
	s.tb.Helper()
	s.withControl("control", func(c rabbitControl) (err error) {
		out, err = c.ctl(args...)
		return err
	})
	return out
}

// Eval returns the value of an Erlang expression, which ends with a full stop. It is quicker than Ctl.
func (s *RabbitServer) Eval(expr string) (value string) {
	s.tb.Helper()
	s.withControl("evaluate", func(c rabbitControl) (err error) {
		value, err = c.eval(expr)
		return err
	})
	return value
}

func (s *RabbitServer) withControl(what string, f func(rabbitControl) error) {
	s.tb.Helper()
	if s.control == nil {
		s.tb.Fatalf("cannot %s: the broker of %s takes no commands from tests; RabbitMQ(tb, PrivateRabbit()) gives one that does", what, rabbitURLVar)
	}
	mustControl(s.tb, what, f(s.control))
}

func mustControl(tb testing.TB, what string, err error) {
	tb.Helper()
	if err != nil {
		tb.Fatalf("telling the broker (%s): %v", what, err)
	}
}

// definitions are a broker's own export format.
type definitions struct {
	Vhosts      []rabbitVhost      `json:"vhosts,omitempty"`
	Users       []rabbitUser       `json:"users,omitempty"`
	Permissions []rabbitPermission `json:"permissions,omitempty"`
}

type rabbitVhost struct {
	Name string `json:"name"`
}

type rabbitUser struct {
	Name     string `json:"name"`
	Password string `json:"password"`
	Tags     string `json:"tags"`
}

type rabbitPermission struct {
	User  string `json:"user"`
	Vhost string `json:"vhost"`
	RabbitPermissions
}

// importTo goes through eval, since rabbitmqctl takes twenty times as long.
func (d definitions) importTo(c rabbitControl) error {
	text, err := json.Marshal(d)
	if err != nil {
		return fmt.Errorf("writing definitions: %w", err)
	}
	return evalOK(c, fmt.Sprintf("rabbit_definitions:import_raw(%s).", erlangText(string(text))))
}

func addVhost(c rabbitControl, user, name string) error {
	all := RabbitPermissions{".*", ".*", ".*"}
	return definitions{
		Vhosts:      []rabbitVhost{{name}},
		Permissions: []rabbitPermission{{user, name, all}},
	}.importTo(c)
}

func deleteVhost(c rabbitControl, name string) error {
	return evalOK(c, fmt.Sprintf("rabbit_vhost:delete(%s, <<\"testenv\">>).", erlangText(name)))
}

// erlangText is an Erlang expression for text.
func erlangText(text string) string {
	return fmt.Sprintf("base64:decode(%q)", base64.StdEncoding.EncodeToString([]byte(text)))
}

func evalOK(c rabbitControl, expr string) error {
	out, err := c.eval(expr)
	if err == nil && !strings.HasPrefix(out, "ok") {
		err = fmt.Errorf("it replies %s", out)
	}
	return err
}
