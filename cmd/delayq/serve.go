package main

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"os"
	"strings"
	"time"

	"github.com/delayq/delayq"
	"github.com/delayq/delayq/backend"
	"github.com/delayq/delayq/server"
)

type serveCommand struct {
	URL       string        `name:"url" default:"sqlite://delayq.db/queue" placeholder:"URL" help:"The store, as other commands name a queue; the queue in it is not used, and may be left out. By default the SQLite file delayq.db in the current directory."`
	Listen    string        `default:"127.0.0.1:8090" placeholder:"ADDRESS" help:"The address and port to listen on. Port 0 is a free one."`
	Tokens    text          `placeholder:"FILE" help:"Accept the tokens of this file alone; \"delayq token\" makes its lines."`
	NoTokens  bool          `name:"no-tokens" help:"Listen on other addresses than the loopback without tokens: every program that reaches the port may do everything."`
	TLSCert   text          `name:"tls-cert" placeholder:"FILE" help:"Serve HTTPS with this certificate, in PEM."`
	TLSKey    text          `name:"tls-key" placeholder:"FILE" help:"The key of the certificate, in PEM."`
	MaxBytes  int           `name:"max-request-bytes" default:"33554432" placeholder:"N" help:"The largest body of a request (allowed: 1024 to 1073741824)."`
	MaxReply  int           `name:"max-reply-bytes" default:"16777216" placeholder:"N" help:"The most bytes of bodies in a reply, which has one message at least (allowed: 1024 to 1073741824)."`
	MaxBatch  int           `default:"1000" placeholder:"N" help:"The most messages of a call (allowed: 1 to 10000)."`
	MaxWait   time.Duration `default:"1m" placeholder:"DURATION" help:"How long a receive may wait (allowed: 1s to 10m)."`
	MaxWaits  int           `name:"max-waiting" default:"10000" placeholder:"N" help:"The most receives that wait at the same time (allowed: 1 to 1000000)."`
	MaxQueues int           `default:"1000" placeholder:"N" help:"The most queues that are open at the same time (allowed: 1 to 100000)."`
	Timeout   time.Duration `default:"30s" placeholder:"DURATION" help:"How long a call of the store may take (allowed: 1s to 10m)."`
	DeadAge   time.Duration `name:"dead-max-age" default:"90d" placeholder:"DURATION" help:"Delete older dead letters; 0s keeps them."`
	DeadCount int           `name:"dead-max-count" default:"100000" placeholder:"N" help:"Keep that many dead letters of a queue; 0 keeps all."`
	Verbose   bool          `help:"Show the library's own log on standard error."`

	Webhooks webhookFlags `embed:""`
}

// Help is the text between the summary and the flags.
func (serveCommand) Help() string {
	return `Gives the verbs of a delay queue as JSON over HTTP, for programs in any language. docs/serve.md has the calls, and GET /openapi.json all of their fields. Queues are made when they are first used.

    delayq serve
    curl --json '{"body": "hello", "after": "2s"}' localhost:8090/v1/queues/mail/messages
    curl --json '{"wait": "20s"}' localhost:8090/v1/queues/mail/receive

Without --tokens the server listens on the loopback alone, where every program of this machine may do everything. A signal, such as Ctrl-C, ends it in good order: receives that wait get an empty reply, and running calls go on to their end.`
}

// Validate is called by the parser.
func (c *serveCommand) Validate() error {
	host, _, err := net.SplitHostPort(c.Listen)
	switch {
	case err != nil:
		return fmt.Errorf("--listen=%s: allowed is ADDRESS:PORT, as 127.0.0.1:8090", c.Listen)
	case c.Tokens == "" && !c.NoTokens && !isLoopback(host):
		return fmt.Errorf("--listen=%s: an address other than the loopback needs --tokens, or --no-tokens to let everyone in", c.Listen)
	case c.Tokens != "" && c.NoTokens:
		return errors.New("--tokens and --no-tokens: allowed is one of them")
	case (c.TLSCert == "") != (c.TLSKey == ""):
		return errors.New("--tls-cert and --tls-key: allowed is both or neither")
	}
	return nil
}

func isLoopback(host string) bool {
	ip := net.ParseIP(host)
	return host == "localhost" || ip != nil && ip.IsLoopback()
}

// Run serves until a signal.
func (c *serveCommand) Run(ctx context.Context, std streams) (err error) {
	opts, err := c.options(std)
	if err != nil {
		return err
	}
	var config *tls.Config
	if c.TLSCert != "" {
		pair, err := tls.LoadX509KeyPair(string(c.TLSCert), string(c.TLSKey))
		if err != nil {
			return fmt.Errorf("--tls-cert and --tls-key: %w", err)
		}
		config = &tls.Config{Certificates: []tls.Certificate{pair}, MinVersion: tls.VersionTLS12}
	}
	b, _, err := openStore(ctx, c.URL)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, b.Close()) }()
	s, err := server.New(b, opts...)
	if err != nil {
		return err
	}
	log := (&namedQueue{Verbose: c.Verbose}).logger(std, slog.LevelWarn)
	posts, closeQueues, err := c.Webhooks.open(ctx, b, delayq.WithLogger(log), delayq.DeadLetterRetention(c.DeadAge, c.DeadCount))
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, closeQueues()) }()
	l, err := (&net.ListenConfig{}).Listen(ctx, "tcp", c.Listen)
	if err != nil {
		return fmt.Errorf("--listen=%s: %w", c.Listen, err)
	}
	c.announce(std, l, b)
	return beside(ctx, func(ctx context.Context) error { return s.Serve(ctx, l, config) }, posts)
}

func (c *serveCommand) options(std streams) ([]server.Option, error) {
	log := (&namedQueue{Verbose: c.Verbose}).logger(std, slog.LevelWarn)
	opts := []server.Option{
		server.WithLogger(log), server.MaxRequestBytes(c.MaxBytes), server.MaxReplyBytes(c.MaxReply), server.MaxBatch(c.MaxBatch), server.MaxWait(c.MaxWait),
		server.MaxWaiting(c.MaxWaits), server.MaxQueues(c.MaxQueues), server.Timeout(c.Timeout),
		server.DeadLetterRetention(c.DeadAge, c.DeadCount),
	}
	if c.NoTokens {
		opts = append(opts, server.AnyHost())
	}
	if c.Tokens == "" {
		return opts, nil
	}
	f, err := os.Open(string(c.Tokens))
	if err != nil {
		return nil, fmt.Errorf("--tokens: %w", err)
	}
	defer func() { _ = f.Close() }()
	tokens, err := server.ReadTokens(f)
	if err != nil {
		return nil, fmt.Errorf("--tokens=%s: %w", c.Tokens, err)
	}
	return append(opts, server.Tokens(tokens)), nil
}

// announce says on standard error where the server is, and who may use it.
func (c *serveCommand) announce(std streams, l net.Listener, b backend.Backend) {
	scheme, who := "http", "every program on this machine may use it"
	if c.TLSCert != "" {
		scheme = "https"
	}
	switch {
	case c.Tokens != "":
		who = "the tokens of " + string(c.Tokens) + " may use it"
	case c.NoTokens:
		who = "everyone who reaches it may use it"
	}
	if b.Traits().Lacks.Has(delayq.Durability) {
		who += ", and its messages are gone when it ends"
	}
	_, _ = fmt.Fprintf(std.err, "delayq: serving %s on %s://%s; %s\n", b.Traits().Name, scheme, l.Addr(), who)
}

type tokenCommand struct {
	Name   string   `arg:"" placeholder:"NAME" help:"The name of the token's owner."`
	Rights []string `arg:"" placeholder:"RIGHT:QUEUE" help:"What the token may do: push, consume, read or admin, on a queue, or on all whose names begin so, as push:mail.*"`
	File   string   `placeholder:"FILE" help:"Add the line to this file; otherwise it goes to standard error."`
}

// Help is the text between the summary and the flags.
func (tokenCommand) Help() string {
	return `Prints a new random token for "delayq serve --tokens". The file has one line for each token: the name, the SHA-256 of the token, and the rights. The token itself is nowhere but in the output.

  push     push, cancel, reschedule
  consume  receive, ack, nack, release, extend, make a dead letter
  read     get, peek, count, list dead letters
  admin    all of these, and redrive or delete dead letters, purge, pause, resume

Delete the line to take the token back, and start the server again.`
}

// Run makes a token.
func (c *tokenCommand) Run(std streams) error {
	if strings.ContainsAny(c.Name, " \t\r\n#") || c.Name == "" {
		return fmt.Errorf("token: name %q: allowed is a word", c.Name)
	}
	token, line, err := server.NewToken(c.Name, c.Rights...)
	if err != nil {
		return fmt.Errorf("token: %w", err)
	}
	if c.File == "" {
		_, _ = fmt.Fprintln(std.err, "the line for the file of --tokens:\n"+line)
		return write(std.out, token+"\n")
	}
	if err := appendLine(c.File, line); err != nil {
		return fmt.Errorf("--file: %w", err)
	}
	return write(std.out, token+"\n")
}

// appendLine adds a line to a file, whose last line may lack its end.
func appendLine(name, line string) error {
	f, err := os.OpenFile(name, os.O_APPEND|os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return err
	}
	content, err := io.ReadAll(f)
	if err == nil {
		if len(content) > 0 && content[len(content)-1] != '\n' {
			line = "\n" + line
		}
		_, err = f.WriteString(line + "\n")
	}
	return errors.Join(err, f.Close())
}
