package queue

import (
	"context"
	"errors"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/delayq/delayq/backend"
	"github.com/delayq/delayq/internal/redis/call"
)

// Config holds the settings that all backends on Redis share.
type Config struct {
	Name   string // of the backend
	Client redis.UniversalClient
	Owned  bool          // Close closes the client
	Poll   time.Duration // how long an idle queue sleeps without a wake-up
	Err    error         // of an option; Open reports it

	// Calls are the client's calls, of which Close waits for the last. NewBackend makes it where it
	// is nil.
	Calls *call.Group

	// Triggered says that a key expires when the first message is due, and wakes the handles.
	Triggered bool

	// Source makes a queue's source.
	Source func(ctx context.Context, name string, o backend.Options) (Source, error)
	// Registry is the key with the names of queues; empty for none. Keys returns the keys of one.
	Registry string
	Keys     func(queue string) []string
	// KeyOf reports whether a key is one of a queue's.
	KeyOf func(key, queue string) bool
}

// DefaultPoll is how long an idle queue sleeps where no option says otherwise.
const DefaultPoll = time.Second

// Reject notes the error of an option, or nil.
func (c *Config) Reject(err error) { c.Err = errors.Join(c.Err, err) }

// SetPoll sets how long an idle queue sleeps. The option's name is for the error.
func (c *Config) SetPoll(option string, d time.Duration) {
	c.Reject(ValidPoll(option, d))
	c.Poll = d
}

// ValidPoll returns the error of an interval that is out of range.
func ValidPoll(option string, d time.Duration) error {
	if d < 10*time.Millisecond || d > time.Minute {
		return backend.Invalid(option, d, "10ms to 1m")
	}
	return nil
}
