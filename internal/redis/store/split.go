package store

import (
	"context"
	"fmt"
	"time"

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
	reply, err := s.note.Read(ctx, noteScript)
	if err != nil {
		return "", err
	}
	return textOf(noteScript, reply)
}

func textOf(sc *script.Script, reply any) (string, error) {
	text, ok := reply.(string)
	if !ok {
		return "", script.Unexpected(sc, reply)
	}
	return text, nil
}

// Split reports whether the queue is split into shards. Of a shard it reports whether it takes no new ids.
func (s *Store) Split(ctx context.Context) (bool, error) {
	note, err := s.Note(ctx)
	return note != "", err
}

// Empty reports whether the store has nothing: no messages, and no ids that UniqueFor keeps.
func (s *Store) Empty(ctx context.Context) (bool, error) {
	keys, err := s.Read(ctx, emptyScript)
	return keys == int64(0), err
}

const (
	// PauseChanged is returned in place of a note that was not changed, since the queue has another pause.
	PauseChanged = "!"

	// AnyPause is for a note without new shards.
	AnyPause = "*"
)

// FirstNote makes the first note of a queue, where there is none, and returns the one that is there then. The new
// shards have been given a pause, as PauseText returns it.
func (s *Store) FirstNote(ctx context.Context, note, pause string) (string, error) {
	return s.changeNote(ctx, "?", note, pause)
}

// ChangeNote changes the note, if it is still the old one, and returns the one that is there then. "" is
// for no note. Where the store has messages of a queue without a note, the new one has it as generation 0.
func (s *Store) ChangeNote(ctx context.Context, old, changed, pause string) (string, error) {
	return s.changeNote(ctx, old, changed, pause)
}

func (s *Store) changeNote(ctx context.Context, args ...any) (string, error) {
	reply, err := s.layout.Run(ctx, layoutScript, args...)
	if err != nil {
		return "", err
	}
	return textOf(layoutScript, reply)
}

// EndPushes has the store of a shard take no new ids, and returns for how long it has taken none, by its server's
// clock. A time makes it forget that after so long.
func (s *Store) EndPushes(ctx context.Context, forget time.Duration) (since time.Duration, err error) {
	reply, err := s.note.Run(ctx, endPushesScript, forget.Milliseconds())
	return time.Duration(script.Int(reply)) * time.Millisecond, err
}

// AllowPushes has the store forget EndPushes, and the note.
func (s *Store) AllowPushes(ctx context.Context) error {
	_, err := call.Do(ctx, s.Calls, func(ctx context.Context) (int64, error) { return s.Client.Unlink(ctx, s.keys.split).Result() })
	if err != nil {
		return fmt.Errorf("removing what a shard is: %w", script.OfWrite(ctx, err))
	}
	return nil
}
