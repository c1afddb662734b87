package script

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/delayq/delayq/backend"
)

var (
	pauseScript = Parse("pause", common+read(shared, "pause"))

	// A client may send plain commands that read to replicas, which may be behind.
	readPauseScript = Parse("read_pause", "return redis.call('GET', KEYS[1]) or ''")
)

// Pausing runs the scripts of a queue that pause it, or that a pause holds back. It is safe for
// concurrent use.
type Pausing struct {
	// Claims runs the scripts that read the pause, whose key comes after the others. The scripts
	// that do not read it are spared the key.
	Claims Runner

	pauses Runner
}

// NewPausing returns the pausing of a queue whose other scripts a Runner runs. key is in their slot.
// The end of a pause is published to the channel.
func NewPausing(r Runner, key, channel string) Pausing {
	p := Pausing{Claims: r, pauses: r}
	p.Claims.Keys = slices.Concat(r.Keys, []string{key})
	p.pauses.Keys, p.pauses.Args = []string{key}, []any{channel}
	return p
}

// PauseAll is as in backend.Queue.
func (p *Pausing) PauseAll(ctx context.Context, pause backend.Pause) error {
	return p.pause(ctx, pause, "")
}

// FirstPause is PauseAll for a store that only its maker knows.
func (p *Pausing) FirstPause(ctx context.Context, pause backend.Pause) error {
	return p.pause(ctx, pause, "first")
}

// AfterFirstPause is PauseAll where the store still has the pause of FirstPause. Where another call
// has changed that pause or ended it, it changes nothing.
func (p *Pausing) AfterFirstPause(ctx context.Context, pause backend.Pause) error {
	return p.pause(ctx, pause, "next")
}

func (p *Pausing) pause(ctx context.Context, pause backend.Pause, how string) error {
	reply, err := p.pauses.Run(ctx, pauseScript, Due(pause.Until), Delay(pause.For), how)
	if err != nil {
		return err
	}
	if p.pauses.Heard(reply) != int64(1) {
		return Unexpected(pauseScript, reply)
	}
	return nil
}

// ResumeAll is as in backend.Queue.
func (p *Pausing) ResumeAll(ctx context.Context) error {
	return p.PauseAll(ctx, backend.Pause{Until: backend.EarliestDue})
}

// Paused returns the queue's pause, with a zero end for none. It changes nothing.
func (p *Pausing) Paused(ctx context.Context) (paused bool, until time.Time, err error) {
	end, err := p.PauseText(ctx)
	if err != nil || end == "" {
		return false, time.Time{}, err
	}
	return true, MS(end), nil
}

// PauseText returns the pause as the key has it: its end in milliseconds or 0, or nothing for no pause.
func (p *Pausing) PauseText(ctx context.Context) (string, error) {
	reply, err := p.pauses.Read(ctx, readPauseScript)
	if err != nil {
		return "", err
	}
	text, ok := reply.(string)
	if !ok {
		return "", Unexpected(readPauseScript, reply)
	}
	return text, nil
}

// OfRead adds the matching sentinel to the error of a command that changes nothing and is no script.
func OfRead(ctx context.Context, err error) error {
	translated := Translate(err)
	if problemOf(ctx, err) == none {
		return translated
	}
	return fmt.Errorf("%w: %w", backend.ErrUnavailable, translated)
}

// OfWrite is OfRead for a command that may have changed something, though there is no reply.
func OfWrite(ctx context.Context, err error) error {
	if problemOf(ctx, err) == lost {
		return fmt.Errorf("%w: %w", ErrUnknown, OfRead(ctx, err))
	}
	return OfRead(ctx, err)
}

// PauseState reads the pause in a reply: its end in milliseconds, 0 for none, -1 without a pause.
func PauseState(reply any) (paused bool, until time.Time) { return Int(reply) >= 0, MS(reply) }
