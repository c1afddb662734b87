package demo

import (
	"context"
	"fmt"
	"io"
	"os"
	"strings"
	"time"
	"unicode"

	"github.com/delayq/delayq/backend"
	"github.com/delayq/delayq/cmd/delayq/internal/human"
	"github.com/delayq/delayq/cmd/delayq/internal/jsonl"
)

// message is one line of the input. Its times are those of the story.
type message struct {
	jsonl.Message
	line int
}

// delay is the wait from now on in a replay that began earlier.
func (m *message) delay(began, now time.Time, speed float64) time.Duration {
	if m.Due.IsZero() {
		return shrunk(m.Delay, speed)
	}
	return max(0, shrunk(m.Due.Sub(began), speed)-now.Sub(began))
}

// check rejects what the library would reject after some messages were pushed.
func (m *message) check() error {
	switch {
	case len(m.ID) > backend.MaxID || strings.IndexFunc(m.ID, unicode.IsControl) >= 0:
		return fmt.Errorf("id %s: allowed are 1 to %d bytes without control characters", jsonl.Shown(m.ID), backend.MaxID)
	case m.Delay < 0:
		return fmt.Errorf("after %v: allowed is 0 or more", m.Delay)
	case !m.Due.IsZero() && (m.Due.Before(backend.EarliestDue) || m.Due.After(backend.LatestDue)):
		return fmt.Errorf("due %s: allowed are the years %d to %d", m.Due.Format(time.RFC3339), backend.EarliestDue.Year(), backend.LatestDue.Year())
	case len(m.Body) > backend.MaxBody:
		return fmt.Errorf("body of %d bytes: allowed are up to %d", len(m.Body), backend.MaxBody)
	}
	return nil
}

// BadInput says which lines of an input cannot be used, and why.
type BadInput struct {
	name  string
	lines []string // the first ones
	total int
}

func (e *BadInput) Error() string {
	text := fmt.Sprintf("%s: %s; nothing was pushed", e.name, human.Count(e.total, "bad line"))
	if e.total > len(e.lines) {
		text += fmt.Sprintf("; the first %d:", len(e.lines))
	}
	return text + "\n" + strings.Join(e.lines, "\n")
}

func (e *BadInput) add(line int, err error) {
	if e.total++; e.total <= mostShown {
		e.lines = append(e.lines, fmt.Sprintf("%s:%d: %v", e.name, line, err))
	}
}

func inputName(input string) string {
	if input == "-" {
		return "stdin"
	}
	return input
}

// load reads and checks the whole input. A read that blocks, on a terminal or a pipe, does not
// keep an interrupted program from ending.
func load(ctx context.Context, cfg Config) ([]message, error) {
	type input struct {
		messages []message
		err      error
	}
	loaded := make(chan input, 1)
	go func() {
		messages, err := readInput(cfg)
		loaded <- input{messages, err}
	}()
	select {
	case in := <-loaded:
		return in.messages, in.err
	case <-ctx.Done():
		return nil, ErrInterrupted
	}
}

func readInput(cfg Config) ([]message, error) {
	if cfg.Input == "-" {
		return parse(inputName(cfg.Input), cfg.Stdin, cfg.Speed)
	}
	f, err := os.Open(cfg.Input)
	if err != nil {
		return nil, fmt.Errorf("reading the input: %w", err)
	}
	defer func() { _ = f.Close() }()
	return parse(cfg.Input, f, cfg.Speed)
}

// parse returns the messages of an input, or a BadInput that tells of all its bad lines.
func parse(name string, r io.Reader, speed float64) ([]message, error) {
	p := parser{speed: speed, now: time.Now(), lines: make(map[string]int)}
	bad := &BadInput{name: name}
	in := jsonl.NewReader(r, jsonl.MaxLine)
	for in.Next() {
		if err := p.line(in); err != nil {
			bad.add(in.Number, err)
		}
	}
	if in.Err != nil {
		return nil, fmt.Errorf("reading the input %s, line %d: %w", name, in.Number+1, in.Err)
	}
	if bad.total > 0 {
		return nil, bad
	}
	return p.messages, nil
}

type parser struct {
	speed    float64
	now      time.Time
	lines    map[string]int // by the id
	messages []message
}

func (p *parser) line(in *jsonl.Reader) error {
	text, err := in.Text()
	if text == nil || err != nil {
		return err
	}
	m := message{line: in.Number}
	if err := m.Read(text); err != nil {
		return err
	}
	if err := m.check(); err != nil {
		return err
	}
	if err := p.unique(m); err != nil {
		return err
	}
	if d := m.delay(p.now, p.now, p.speed); d > backend.MaxDelay {
		return fmt.Errorf("due in %s at speed %g: allowed is up to %s", human.Brief(d.Round(time.Hour)), p.speed, human.Brief(backend.MaxDelay))
	}
	p.messages = append(p.messages, m)
	return nil
}

func (p *parser) unique(m message) error {
	if m.ID == "" {
		return nil
	}
	if first, taken := p.lines[m.ID]; taken {
		return fmt.Errorf("id %q is that of line %d: allowed is one line for each id", jsonl.Shown(m.ID), first)
	}
	p.lines[m.ID] = m.line
	return nil
}
