package demo

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"github.com/delayq/delayq/backend"
	"github.com/delayq/delayq/cmd/delayq/internal/jsonl"
)

// message is one line of the input.
type message struct {
	line int
	id   string // "" when the line has none
	body []byte
	wait time.Duration // in the story
	due  time.Time     // in the story; zero when the line has none
}

// delay is the wait from now on in a replay that began earlier.
func (m *message) delay(began, now time.Time, speed float64) time.Duration {
	if m.due.IsZero() {
		return shrunk(m.wait, speed)
	}
	return max(0, shrunk(m.due.Sub(began), speed)-now.Sub(began))
}

// BadInput says which lines of an input cannot be used, and why.
type BadInput struct {
	name  string
	lines []string // the first ones
	total int
}

func (e *BadInput) Error() string {
	text := fmt.Sprintf("%s: %s; nothing was pushed", e.name, counted(e.total, "bad line"))
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
	if err := m.read(text); err != nil {
		return err
	}
	if err := p.unique(m); err != nil {
		return err
	}
	if d := m.delay(p.now, p.now, p.speed); d > backend.MaxDelay {
		return fmt.Errorf("due in %s at speed %g: allowed is up to %s", brief(d.Round(time.Hour)), p.speed, brief(backend.MaxDelay))
	}
	p.messages = append(p.messages, m)
	return nil
}

func (p *parser) unique(m message) error {
	if m.id == "" {
		return nil
	}
	if first, taken := p.lines[m.id]; taken {
		return fmt.Errorf("id %q is that of line %d: allowed is one line for each id", jsonl.Shown(m.id), first)
	}
	p.lines[m.id] = m.line
	return nil
}

var errBothTimes = errors.New(`"delay" and "due": allowed is one of them`)
