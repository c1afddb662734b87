package judge

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"sync"
	"time"
)

// A Recorder keeps calls. Begin comes before the call, so that a call that never returns is known too.
type Recorder interface {
	Begin(c *Call)
	End(c *Call)
}

// Log keeps calls in memory. It is safe for concurrent use.
type Log struct {
	mu    sync.Mutex
	calls []Call
}

// Begin does nothing: a process that records in memory sees the call end.
func (*Log) Begin(*Call) {}

// End keeps the call.
func (l *Log) End(c *Call) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.calls = append(l.calls, *c)
}

// Calls returns what was kept so far.
func (l *Log) Calls() []Call {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.calls[:len(l.calls):len(l.calls)]
}

// File keeps calls as lines of JSON in a file, which outlive a process that is killed. It is safe for
// concurrent use.
type File struct {
	mu  sync.Mutex
	f   *os.File
	seq int
}

// OpenFile appends to a file.
func OpenFile(path string) (*File, error) {
	f, err := os.OpenFile(path, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return nil, fmt.Errorf("opening a recording: %w", err)
	}
	return &File{f: f}, nil
}

// Begin writes the call before it is made.
func (r *File) Begin(c *Call) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.seq++
	c.Seq = r.seq
	r.write(c)
}

// End writes the call again.
func (r *File) End(c *Call) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.write(c)
}

// write panics when it fails: a process that cannot record must stop.
func (r *File) write(v any) {
	line, err := json.Marshal(v)
	if err == nil {
		_, err = r.f.Write(append(line, '\n'))
	}
	if err != nil {
		panic(fmt.Errorf("recording: %w", err))
	}
}

// ReadCalls reads the calls of one process. The last line is cut off where the process was killed
// while it wrote.
func ReadCalls(path string) ([]Call, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer func() { _ = f.Close() }()
	var calls []Call
	at := make(map[int]int)
	for in := bufio.NewReader(f); ; {
		line, err := in.ReadBytes('\n')
		if err == io.EOF {
			return calls, nil
		}
		if err != nil {
			return nil, fmt.Errorf("reading the recording %s: %w", path, err)
		}
		var c Call
		if err := json.Unmarshal(line, &c); err != nil {
			return nil, fmt.Errorf("reading the recording %s: %w", path, err)
		}
		if i, begun := at[c.Seq]; begun {
			calls[i] = c
		} else {
			at[c.Seq] = len(calls)
			calls = append(calls, c)
		}
	}
}

func now() int64 { return time.Now().UnixNano() }
