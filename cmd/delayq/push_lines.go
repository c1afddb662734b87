package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"sync/atomic"

	"golang.org/x/sync/semaphore"

	"github.com/delayq/delayq"
	"github.com/delayq/delayq/cmd/delayq/internal/human"
	"github.com/delayq/delayq/cmd/delayq/internal/jsonl"
)

// A batch is up to so many messages or bytes. Lines of one more are read meanwhile.
const (
	mostInBatch  = 1000
	bytesInBatch = 8 << 20
	bytesAhead   = 2 * bytesInBatch
)

// mostComplaints is how many bad lines are named one by one.
const mostComplaints = 20

// pushLine is one line of input.
type pushLine struct {
	jsonl.Message
	number int
	bytes  int64 // that it holds of those ahead
	err    error // why it is bad
}

// A pusher pushes the lines of an input.
type pusher struct {
	*pushCommand
	q     delayq.Queue
	std   streams
	input *counted
	ahead *semaphore.Weighted // the bytes of lines that are not pushed yet
	bar   *progress

	pushed, refused int
	last            int   // the line up to which all are pushed or named
	failed          error // ended the reading
	unwritten       error // why the output lacks something
}

// counted counts the bytes that were read.
type counted struct {
	io.Reader
	n atomic.Int64
}

func (c *counted) Read(p []byte) (int, error) {
	n, err := c.Reader.Read(p)
	c.n.Add(int64(n))
	return n, err
}

func pushLines(ctx context.Context, c *pushCommand, q delayq.Queue, std streams) error {
	p := &pusher{pushCommand: c, q: q, std: std, input: &counted{Reader: std.in}, ahead: semaphore.NewWeighted(bytesAhead)}
	p.bar = newProgress(std, "pushing (bytes of input)", sizeOf(std.in))
	defer p.bar.end()
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	lines := make(chan pushLine, mostInBatch)
	go p.read(ctx, lines)
	err := p.pushAll(ctx, lines)
	switch {
	case err != nil:
		if isUnwritten(err) || errors.Is(err, context.Canceled) {
			p.sayLast()
		}
		return err
	case p.failed != nil && p.last > 0:
		p.sayLast()
		return fmt.Errorf("reading the rest of standard input: %w: %w", p.failed, errPartly)
	case p.failed != nil:
		return fmt.Errorf("reading standard input: %w", p.failed)
	case p.refused > 0:
		return fmt.Errorf("%d of %s: %w", p.refused, human.Count(p.pushed+p.refused, "line"), errPartly)
	}
	return nil
}

// sayLast says from where to go on.
func (p *pusher) sayLast() {
	if p.last > 0 {
		_, _ = fmt.Fprintf(p.std.err, "delayq: stopped after stdin:%d\n", p.last)
	}
}

// sizeOf returns the size of a file in bytes, -1 for other inputs.
func sizeOf(in io.Reader) int64 {
	if f, ok := in.(*os.File); ok {
		if info, err := f.Stat(); err == nil && info.Mode().IsRegular() {
			return info.Size()
		}
	}
	return -1
}

// read sends the lines, and with bad ones their errors. When the program ends, a read that blocks
// ends with it.
func (p *pusher) read(ctx context.Context, lines chan<- pushLine) {
	defer close(lines)
	in := jsonl.NewReader(p.input, jsonl.MaxLine)
	for in.Next() {
		text, err := in.Text()
		if text == nil && err == nil {
			continue
		}
		m := pushLine{number: in.Number, bytes: min(int64(len(text)), bytesAhead)} // a longer one waits for all others
		if p.failed = p.ahead.Acquire(ctx, m.bytes); p.failed != nil {
			return
		}
		if err == nil {
			err = m.Read(text)
		}
		m.err = err
		p.complete(&m)
		select {
		case lines <- m:
		case <-ctx.Done():
			p.failed = ctx.Err()
			return
		}
	}
	p.failed = in.Err
}

// pushAll pushes the lines that have arrived, until the input ends.
func (p *pusher) pushAll(ctx context.Context, lines <-chan pushLine) error {
	for {
		select {
		case first, ok := <-lines:
			if !ok {
				return nil
			}
			batch := gather(first, lines)
			if err := p.pushBatch(ctx, batch); err != nil {
				return err
			}
			for _, m := range batch {
				p.ahead.Release(m.bytes)
			}
			p.bar.reach(p.input.n.Load())
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// gather takes the lines that have arrived, without waiting for more.
func gather(first pushLine, lines <-chan pushLine) []pushLine {
	batch, bytes := []pushLine{first}, len(first.Body)
	for len(batch) < mostInBatch && bytes < bytesInBatch {
		select {
		case m, ok := <-lines:
			if !ok {
				return batch
			}
			batch, bytes = append(batch, m), bytes+len(m.Body)
		default:
			return batch
		}
	}
	return batch
}

// pushBatch pushes the good lines, and tells of all in their order.
func (p *pusher) pushBatch(ctx context.Context, batch []pushLine) error {
	var good []delayq.Message
	for _, m := range batch {
		if m.err == nil {
			good = append(good, m.Message.Message)
		}
	}
	ids, errs := p.push(ctx, good)
	var fatal error
	for i, k := 0, 0; i < len(batch); i++ {
		m, id := &batch[i], ""
		if m.err == nil {
			id, m.err = ids[k], errs[k]
			k++
		}
		p.tell(m, id)
		if fatal == nil && isFatal(m.err) {
			fatal = fmt.Errorf("stdin:%d: %w", m.number, storeError{m.err})
		}
		if fatal == nil {
			p.last = m.number
		}
	}
	return errors.Join(fatal, p.unwritten)
}

// isFatal reports whether a store's error would meet every message, not only this one. Errors of
// lines have no sentinel either, but no rejectedError.
func isFatal(err error) bool {
	var rejected *rejectedError
	return errors.Is(err, delayq.ErrFull) || errors.As(err, &rejected) && !isAny(err, storeReplies...)
}

// rejectedError is a store's error for one message.
type rejectedError struct{ error }

func (e *rejectedError) Unwrap() error { return e.error }

// push returns an id and an outcome for each message.
func (p *pusher) push(ctx context.Context, ms []delayq.Message) ([]string, []error) {
	errs := make([]error, len(ms))
	ids, err := p.q.PushBatch(ctx, ms)
	var some *delayq.BatchError
	switch {
	case err == nil:
		return ids, errs
	case errors.As(err, &some):
		errs = some.Errs
	case len(ms) > 1 && isAny(err, delayq.ErrInvalid, delayq.ErrUnsupported): // nothing was stored, for one of them
		return p.pushSingly(ctx, ms)
	default:
		ids = make([]string, len(ms))
		for i := range errs {
			errs[i] = err
		}
	}
	for i, err := range errs {
		if err != nil {
			errs[i] = &rejectedError{err}
		}
	}
	return ids, errs
}

func (p *pusher) pushSingly(ctx context.Context, ms []delayq.Message) (ids []string, errs []error) {
	for i := range ms {
		id, err := p.push(ctx, ms[i:i+1])
		ids, errs = append(ids, id[0]), append(errs, err[0])
	}
	return ids, errs
}

// tell prints a line's outcome. What the output rejects goes to standard error.
func (p *pusher) tell(m *pushLine, id string) {
	if m.err == nil {
		p.pushed++
		if p.unwritten == nil {
			p.unwritten = p.print(p.std, m.number, id)
		}
		if p.unwritten != nil {
			stored(p.std, fmt.Sprintf("stdin:%d: ", m.number), id)
		}
		return
	}
	p.refused++
	why := reason(m.err)
	switch {
	case p.refused <= mostComplaints:
		_, _ = fmt.Fprintf(p.std.err, "delayq: stdin:%d: %s\n", m.number, why)
	case p.refused == mostComplaints+1:
		_, _ = fmt.Fprintln(p.std.err, "delayq: more lines were not pushed; --json names all of them")
	}
	if p.JSON && p.unwritten == nil {
		p.unwritten = writeJSON(p.std.out, pushedJSON{Line: m.number, Error: why})
	}
}

// reason is the library's error for one message, without the batch around it.
func reason(err error) string {
	var invalid *delayq.InvalidError
	var unsupported *delayq.UnsupportedError
	switch {
	case errors.As(err, &invalid):
		return invalid.Error()
	case errors.As(err, &unsupported):
		return unsupported.Error()
	}
	return plain(err)
}
