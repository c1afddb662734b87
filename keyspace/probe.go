package keyspace

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"time"

	"github.com/redis/go-redis/v9"
)

var errNoEvent = errors.New("the expiry of a key was not told")

// probe lets a key expire, and checks whether the server publishes it. The reply to a PING that is
// sent after the expiry comes after the event, so that probe never waits in vain.
func probe(ctx context.Context, s server, prefix string) error {
	events := s.Subscribe(ctx, expiries(s))
	defer func() { _ = events.Close() }()
	if _, err := receive(ctx, events); err != nil {
		return err
	}
	key, err := plant(ctx, s, prefix)
	if err != nil {
		return err
	}
	if err := wither(ctx, s, key); err != nil {
		return err
	}
	if err := events.Ping(ctx); err != nil {
		return fmt.Errorf("checking for expiry events: %w", err)
	}
	return hears(ctx, events, key)
}

func hears(ctx context.Context, events *redis.PubSub, key string) error {
	for {
		switch e, err := receive(ctx, events); e := e.(type) {
		case *redis.Message:
			if e.Payload == key {
				return nil
			}
		case *redis.Pong:
			return errNoEvent
		default:
			if err != nil {
				return err
			}
		}
	}
}

func receive(ctx context.Context, events *redis.PubSub) (any, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	e, err := events.ReceiveTimeout(ctx, checkWithin)
	if err != nil {
		return nil, fmt.Errorf("checking for expiry events: %w", err)
	}
	return e, nil
}

// plantings bounds the search for a key that the server of a Cluster holds. It finds one after as
// many tries as there are masters, on average.
const plantings = 1000

// plant sets a key that expires at once.
func plant(ctx context.Context, s server, prefix string) (key string, err error) {
	for range plantings {
		key = prefix + ":{" + rand.Text() + "}:probe"
		err = s.Set(ctx, key, "", time.Millisecond).Err()
		if _, moved := redis.IsMovedError(err); !moved {
			break
		}
	}
	if err != nil {
		return "", fmt.Errorf("setting a key to check for expiry events: %w", err)
	}
	return key, nil
}

// wither waits until the key has expired. Reading it makes the server notice.
func wither(ctx context.Context, s server, key string) error {
	for {
		time.Sleep(2 * time.Millisecond)
		err := s.Get(ctx, key).Err()
		if errors.Is(err, redis.Nil) {
			return nil
		}
		if err != nil {
			return fmt.Errorf("reading a key to check for expiry events: %w", err)
		}
		if err := ctx.Err(); err != nil {
			return err
		}
	}
}
