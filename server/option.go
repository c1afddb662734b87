package server

import (
	"log/slog"
	"time"

	"github.com/delayq/delayq/backend"
	"github.com/delayq/delayq/internal/valid"
)

type settings struct {
	log       *slog.Logger
	tokens    *TokenSet
	anyHost   bool
	retention backend.Retention

	requestBytes int64
	replyBytes   int
	batch        int
	wait         time.Duration
	waiting      int
	timeout      time.Duration
	queues       int
}

// The defaults of options.
const (
	DefaultMaxRequestBytes = 32 << 20
	DefaultMaxReplyBytes   = 16 << 20
	DefaultMaxBatch        = 1000
	DefaultMaxWait         = time.Minute
	DefaultMaxWaiting      = 10_000
	DefaultTimeout         = 30 * time.Second
	DefaultMaxQueues       = 1000
	DefaultDeadLetterAge   = 90 * 24 * time.Hour
	DefaultDeadLetterCount = 100_000
)

// An Option changes a setting of [New].
type Option func(*settings) error

// WithLogger sets where the server logs failures. slog.Default() is the default. It logs no body, no
// header and no token.
func WithLogger(log *slog.Logger) Option {
	return func(s *settings) error {
		s.log = log
		return valid.Given("WithLogger", log, "a logger")
	}
}

// Tokens makes every call but those on health need one of these tokens, with a right on the queue.
func Tokens(tokens *TokenSet) Option {
	return func(s *settings) error {
		s.tokens = tokens
		return valid.Given("Tokens", tokens, "the result of ReadTokens")
	}
}

// AnyHost accepts requests for any host name, where there are no [Tokens]. Then a web page that a
// user of this machine opens may reach the server under a name of its own (DNS rebinding).
func AnyHost() Option {
	return func(s *settings) error {
		s.anyHost = true
		return nil
	}
}

// MaxRequestBytes bounds the body of a request, 1 KiB to 1 GiB: 32 MiB by default. A body of 16 MiB
// that is not text takes 22 MiB.
func MaxRequestBytes(n int) Option {
	return func(s *settings) error {
		s.requestBytes = int64(n)
		return valid.Within("MaxRequestBytes", n, 1<<10, 1<<30)
	}
}

// MaxReplyBytes bounds the bodies and headers in a reply, 1 KiB to 1 GiB: 16 MiB by default. A reply
// has one message at least. The other messages that a client asked for stay in the store, or go back
// to it, and their attempts do not count: a thousand may be 16 GiB.
func MaxReplyBytes(n int) Option {
	return func(s *settings) error {
		s.replyBytes = n
		return valid.Within("MaxReplyBytes", n, 1<<10, 1<<30)
	}
}

// MaxBatch bounds the messages of a call, 1 to 10,000: 1,000 by default.
func MaxBatch(n int) Option {
	return func(s *settings) error {
		s.batch = n
		return valid.Within("MaxBatch", n, 1, 10_000)
	}
}

// MaxWait bounds how long a receive waits, 1 s to 10 min: a minute by default. A receive that asks
// for more waits that long.
func MaxWait(d time.Duration) Option {
	return func(s *settings) error {
		s.wait = d
		if d < time.Second || d > 10*time.Minute {
			return backend.Invalid("MaxWait", d, "1s to 10m")
		}
		return nil
	}
}

// MaxWaiting bounds how many receives wait at the same time, 1 to a million: 10,000 by default.
// Further ones are told to come again.
func MaxWaiting(n int) Option {
	return func(s *settings) error {
		s.waiting = n
		return valid.Within("MaxWaiting", n, 1, 1_000_000)
	}
}

// Timeout bounds the store's work for a call, and the time in which a client sends a body or reads a
// reply, 1 s to 10 min: 30 s by default.
func Timeout(d time.Duration) Option {
	return func(s *settings) error {
		s.timeout = d
		if d < time.Second || d > 10*time.Minute {
			return backend.Invalid("Timeout", d, "1s to 10m")
		}
		return nil
	}
}

// MaxQueues bounds how many queues are open at the same time, 1 to 100,000: 1,000 by default. To
// open another one, the server closes one that is not in use. Messages and leases stay. Where
// leases end with a connection, as on RabbitMQ, it closes none, and further queues are refused.
func MaxQueues(n int) Option {
	return func(s *settings) error {
		s.queues = n
		return valid.Within("MaxQueues", n, 1, 100_000)
	}
}

// DeadLetterRetention sets which dead letters are kept, as the option of package delayq does: those
// that died less than maxAge ago, and the maxCount youngest. 0 is no bound. The default is 90 days
// and 100,000.
func DeadLetterRetention(maxAge time.Duration, maxCount int) Option {
	return func(s *settings) error {
		s.retention = backend.Retention{MaxAge: maxAge, MaxCount: maxCount}
		return valid.Retention("DeadLetterRetention", s.retention)
	}
}

func newSettings(opts []Option) (*settings, error) {
	s := &settings{
		log: slog.Default(), requestBytes: DefaultMaxRequestBytes, replyBytes: DefaultMaxReplyBytes,
		batch: DefaultMaxBatch, wait: DefaultMaxWait,
		waiting: DefaultMaxWaiting, timeout: DefaultTimeout, queues: DefaultMaxQueues,
		retention: backend.Retention{MaxAge: DefaultDeadLetterAge, MaxCount: DefaultDeadLetterCount},
	}
	return s, valid.Apply(s, opts, "server option", "the result of Tokens, MaxBatch or another option")
}
