package testenv

import (
	"fmt"
	"strings"
)

// RabbitOption is a test's demand on its RabbitMQ broker. A broker from a URL meets none, so a test
// with options gets a broker of its own.
type RabbitOption func(*rabbitSettings)

type rabbitSettings struct {
	private  bool
	config   []directive
	advanced []directive
	plugins  []string
}

// PrivateRabbit asks for a broker that the test may kill, pause and restart.
func PrivateRabbit() RabbitOption { return func(s *rabbitSettings) { s.private = true } }

// RabbitConfig adds a line to the broker's rabbitmq.conf, for example
// RabbitConfig("consumer_timeout", "10000"). Of two lines with one key the later counts.
func RabbitConfig(key, value string) RabbitOption {
	return func(s *rabbitSettings) { s.add(key, value) }
}

// RabbitAdvanced sets a parameter that rabbitmq.conf has no key for, in the advanced.config of the
// broker's application rabbit. The value is an Erlang term.
func RabbitAdvanced(parameter, value string) RabbitOption {
	return func(s *rabbitSettings) {
		s.advanced = append(s.advanced, directive{parameter, []string{value}})
	}
}

// RabbitPlugins enables plugins.
func RabbitPlugins(names ...string) RabbitOption {
	return func(s *rabbitSettings) { s.plugins = append(s.plugins, names...) }
}

func newRabbitSettings(opts []RabbitOption) rabbitSettings {
	var s rabbitSettings
	for _, opt := range opts {
		opt(&s)
	}
	return s
}

func (s *rabbitSettings) add(key, value string) {
	s.config = append(s.config, directive{key, []string{value}})
}

// isSet reports whether a broker without these settings does not suffice.
func (s *rabbitSettings) isSet() bool { return len(s.config)+len(s.advanced)+len(s.plugins) > 0 }

// text is the configuration as a file.
func (s *rabbitSettings) text() string {
	var b strings.Builder
	for _, d := range s.config {
		fmt.Fprintf(&b, "%s = %s\n", d.name, strings.Join(d.args, " "))
	}
	return b.String()
}

// oneSystemCall makes quorum queues write and sync their log in one system call instead of two, each
// of which takes a thread of its own. It makes messages a third less late.
const oneSystemCall = "{ra, [{wal_write_strategy, o_sync}]}"

// advancedText is the advanced configuration as a file.
func (s *rabbitSettings) advancedText() string {
	parameters := make([]string, len(s.advanced))
	for i, d := range s.advanced {
		parameters[i] = fmt.Sprintf("{%s, %s}", d.name, strings.Join(d.args, " "))
	}
	return fmt.Sprintf("[{rabbit, [%s]}, %s].\n", strings.Join(parameters, ", "), oneSystemCall)
}
