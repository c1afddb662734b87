package store

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/delayq/delayq/backend"
	"github.com/delayq/delayq/internal/redis/call"
	"github.com/delayq/delayq/internal/redis/script"
)

// Several stores may be one queue: its shards. Over time it may have several generations of them. Only
// the newest takes messages with new ids, and the others go on with those that they have. The store of
// the queue's own name keeps a note of the generations.

// ErrSplit is the error of a push of a new id to a store that takes none any more, and of a claim that finds
// nothing in one.
var ErrSplit error = &backend.InvalidError{
	What: "number of shards", Value: "1", Allowed: "the option Shards, since another program has split the queue: open it with that, or with claims by script",
}

// stored is script.Stored, and ErrSplit for 6.
func stored(reply any) error {
	if reply == int64(6) {
		return ErrSplit
	}
	return script.Stored(reply)
}

// Note returns the note of the queue's generations, or nothing.
func (s *Store) Note(ctx context.Context) (string, error) {
	note, err := call.Do(ctx, s.Calls, func(ctx context.Context) (string, error) { return s.Client.Get(ctx, s.keys.split).Result() })
	if errors.Is(err, redis.Nil) {
		return "", nil
	}
	if err != nil {
		return "", fmt.Errorf("reading the shards: %w", script.OfRead(ctx, err))
	}
	return note, nil
}

// Split reports whether the queue is split into shards.
func (s *Store) Split(ctx context.Context) (bool, error) { return s.exist(ctx, s.keys.split) }

// FirstNote makes the first note of a queue, where there is none, and returns the one that is there then.
func (s *Store) FirstNote(ctx context.Context, note string) (string, error) {
	return s.note(ctx, "?", note)
}

// ChangeNote changes the note, if it is still the old one, and returns the one that is there then. "" is
// for no note. Where the store has messages of a queue without a note, the new one has it as generation 0.
func (s *Store) ChangeNote(ctx context.Context, old, changed string) (string, error) {
	return s.note(ctx, old, changed)
}

func (s *Store) note(ctx context.Context, args ...any) (string, error) {
	reply, err := s.notes.Run(ctx, layoutScript, args...)
	if err != nil {
		return "", err
	}
	note, ok := reply.(string)
	if !ok {
		return "", script.Unexpected(layoutScript, reply)
	}
	return note, nil
}

// EndPushes has the store of a shard take no new ids. A time makes it forget that after so long.
func (s *Store) EndPushes(ctx context.Context, forget time.Duration) error {
	_, err := call.Do(ctx, s.Calls, func(ctx context.Context) (string, error) {
		return s.Client.Set(ctx, s.keys.split, "ended", forget).Result()
	})
	if err != nil {
		return fmt.Errorf("ending the pushes to a shard: %w", script.OfWrite(ctx, err))
	}
	return nil
}

// Empty reports whether the store has nothing: no messages, and no ids that UniqueFor keeps.
func (s *Store) Empty(ctx context.Context) (bool, error) {
	there, err := s.exist(ctx, s.keys.list...)
	return !there && err == nil, err
}

func (s *Store) exist(ctx context.Context, keys ...string) (bool, error) {
	n, err := call.Do(ctx, s.Calls, func(ctx context.Context) (int64, error) { return s.Client.Exists(ctx, keys...).Result() })
	if err != nil {
		return false, fmt.Errorf("looking for a shard's keys: %w", script.OfRead(ctx, err))
	}
	return n > 0, nil
}

// AllowPushes has the store forget EndPushes, and the note.
func (s *Store) AllowPushes(ctx context.Context) error {
	_, err := call.Do(ctx, s.Calls, func(ctx context.Context) (int64, error) { return s.Client.Unlink(ctx, s.keys.split).Result() })
	if err != nil {
		return fmt.Errorf("removing what a shard is: %w", script.OfWrite(ctx, err))
	}
	return nil
}
