package main

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"strings"
	"time"

	"github.com/delayq/delayq"
)

type pushCommand struct {
	namedQueue
	Body          *string        `arg:"" optional:"" placeholder:"BODY" help:"The message's body. \"-\", or none, reads a message from each line of standard input."`
	ID            text           `name:"id" placeholder:"ID" help:"The message's id, 1 to 255 bytes. A second push of it is rejected while the first message is in the queue."`
	After         *time.Duration `placeholder:"DURATION" help:"Due that long from now by the store's clock, as 1.5s, 30m, 1d12h or 2w."`
	At            *time.Time     `placeholder:"TIME" help:"Due at that time, as \"2030-01-31 18:00\", \"tomorrow 9:00\" or 2030-01-31T18:00:00Z."`
	Spread        *time.Duration `placeholder:"DURATION" help:"Due at a random time up to that much later, so that many messages for one time do not come at once."`
	Replace       bool           `help:"Replace the message of that id if it waits. It is an error while a worker has it."`
	AfterInFlight bool           `name:"after-in-flight" help:"With --replace: also while a worker has the message. The new one is scheduled when the worker is done with it, in whatever way."`
	MaxWait       *time.Duration `placeholder:"DURATION" help:"With --replace: due at the latest that long after the first push that it replaces."`
	Header        []string       `sep:"none" placeholder:"KEY=VALUE" help:"A header; may be repeated."`
	Type          text           `placeholder:"TYPE" help:"The header by which a Router chooses the handler: \"type\"."`
	JSON          bool           `name:"json" help:"Print a JSON line for each message instead of its id."`
	limitFlags

	headers map[string]string
}

// Help is the text between the summary and the flags.
func (pushCommand) Help() string {
	return `Prints the id of each message that was stored.

Each line of standard input is one message, a JSON object; blank lines are skipped. All of its fields may be left out:

    {"id": "order-17", "after": "30m", "body": {"total": 12}, "headers": {"lang": "en"}, "type": "invoice"}
    {"due": "2030-01-31 18:00", "body_base64": "3q2+7w==", "headers_base64": {"raw": "/w=="}}

"body" is a string, whose text is the body, or any other JSON, which is the body unchanged; "body_base64" has any bytes. "after" is a duration from the push on, "due" a time, as for --after and --at. "limits" is an object with the fields "attempts", "handler_timeout", "expires_after", "expires" and "dead_letter_expired", as the flags of these names. The flags are defaults for lines without these fields. The output of "delayq consume" and "delayq peek" is valid input: fields that only a store sets, such as "state" and "attempts", are ignored.

Messages are pushed in batches, as they arrive. A bad line, or one whose message the store rejects, is named on standard error with the reason. The other lines are pushed, and the exit code is 3. When the store itself fails, the program stops and names the first line that was not pushed. When the input cannot be read to its end, or a signal ends the program, it names the last line that was pushed or rejected.`
}

// Validate is called by the parser.
func (c *pushCommand) Validate() error {
	if c.After != nil && c.At != nil {
		return errors.New("--after and --at: allowed is one of them")
	}
	if c.MaxWait != nil && !c.Replace {
		return errors.New("--max-wait: allowed with --replace")
	}
	if c.AfterInFlight && !c.Replace {
		return errors.New("--after-in-flight: allowed with --replace")
	}
	if c.fromLines() && c.ID != "" {
		return errors.New("--id: allowed with a BODY; lines have an id each")
	}
	var err error
	if c.headers, err = headersOf(c.Header, c.Type); err != nil {
		return err
	}
	return c.limitFlags.read()
}

// headersOf are the headers of the flags --header and --type.
func headersOf(given []string, typ text) (headers map[string]string, err error) {
	for _, h := range given {
		key, value, ok := strings.Cut(h, "=")
		if !ok {
			return nil, fmt.Errorf("--header=%s: allowed is KEY=VALUE", h)
		}
		set(&headers, key, value)
	}
	if typ != "" {
		set(&headers, delayq.TypeHeader, string(typ))
	}
	return headers, nil
}

func (c *pushCommand) fromLines() bool { return c.Body == nil || *c.Body == "-" }

// Run pushes.
func (c *pushCommand) Run(ctx context.Context, std streams) error {
	return c.use(ctx, std, func(q delayq.Queue) error {
		if !q.Supports(delayq.Durability) {
			_, _ = fmt.Fprintln(std.err, "delayq: this queue lives in this process: its messages are gone when it ends")
		}
		if c.fromLines() {
			return pushLines(ctx, c, q, std)
		}
		id, err := q.Push(ctx, []byte(*c.Body), c.options()...)
		if err != nil {
			return err
		}
		if err := c.print(std, 1, id); err != nil {
			stored(std, "", id)
			return err
		}
		return nil
	})
}

func (c *pushCommand) options() (opts []delayq.PushOption) {
	if c.After != nil {
		opts = append(opts, delayq.After(*c.After))
	}
	if c.At != nil {
		opts = append(opts, delayq.At(*c.At))
	}
	if c.Spread != nil {
		opts = append(opts, delayq.Spread(*c.Spread))
	}
	if c.ID != "" {
		opts = append(opts, delayq.ID(string(c.ID)))
	}
	if c.Replace {
		opts = append(opts, delayq.Replace())
	}
	if c.AfterInFlight {
		opts = append(opts, delayq.ReplaceAfterInFlight())
	}
	if c.MaxWait != nil {
		opts = append(opts, delayq.MaxWait(*c.MaxWait))
	}
	for k, v := range c.headers {
		opts = append(opts, delayq.Header(k, v))
	}
	opts = append(opts, func(m *delayq.Message) error {
		m.Limits = c.limits
		return nil
	})
	return opts
}

// complete adds the defaults of fields that a line leaves out.
func (c *pushCommand) complete(m *pushLine) {
	if !m.Timed && c.After != nil {
		m.Delay = *c.After
	}
	if !m.Timed && c.At != nil {
		m.Due = *c.At
	}
	if len(c.headers) > 0 {
		own := m.Headers
		m.Headers = maps.Clone(c.headers)
		maps.Copy(m.Headers, own)
	}
	if c.Spread != nil {
		m.Spread = *c.Spread
	}
	m.Replace, m.AfterInFlight = c.Replace, c.AfterInFlight
	if c.MaxWait != nil {
		m.MaxWait = *c.MaxWait
	}
	if m.Limits == nil {
		m.Limits = c.limits
	}
}

// pushedJSON is the outcome of a line: an id or an error.
type pushedJSON struct {
	Line  int    `json:"line"`
	ID    string `json:"id,omitempty"`
	Error string `json:"error,omitempty"`
}

// stored prints the id of a message to standard error when the output failed.
func stored(std streams, line, id string) {
	_, _ = fmt.Fprintf(std.err, "delayq: %sstored as %q, which could not be written\n", line, id)
}

func (c *pushCommand) print(std streams, number int, id string) error {
	if c.JSON {
		return writeJSON(std.out, pushedJSON{Line: number, ID: id})
	}
	return write(std.out, id+"\n")
}
