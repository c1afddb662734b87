package main

import (
	"context"
	"crypto/sha256"
	"crypto/subtle"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"os"
	"path"
	"strings"
	"time"

	"github.com/delayq/delayq"
	"github.com/delayq/delayq/backend"
	"github.com/delayq/delayq/dashboard"
)

type dashboardCommand struct {
	URLs         []string `arg:"" name:"url" placeholder:"URL" help:"A store, with a queue or without one, as zsetpoll://localhost:6379 or redis://localhost:6379."`
	Listen       string   `default:"127.0.0.1:8490" placeholder:"ADDRESS" help:"Where to listen, ${default} unless given. Port 0 takes a free one."`
	Write        bool     `help:"Allow changes: push, cancel, redrive, delete, pause, purge. Otherwise the dashboard is read-only."`
	PasswordFile text     `placeholder:"FILE" help:"Ask browsers for the password in this file, with any user name. An address of other machines needs it."`
	Verbose      bool     `help:"Show the log of changes and of the library on standard error."`
}

// Help is the text between the summary and the flags.
func (dashboardCommand) Help() string {
	return `Shows all queues of the stores, and their messages. The queue that a URL names is shown too when it has no messages. Where a store cannot list its queues, as RabbitMQ without ?management=HOST:PORT, the URL has to name one.

It serves this machine alone and changes nothing, unless --write is given. To serve other machines, give --listen and --password-file, and put a proxy with TLS before it: passwords are sent in the clear otherwise.

An open page counts each queue that it shows every two seconds. A page that nobody sees costs nothing.`
}

// Validate is called by the parser.
func (c *dashboardCommand) Validate() error {
	host, _, err := net.SplitHostPort(c.Listen)
	if err != nil {
		return fmt.Errorf("--listen: expected HOST:PORT: %w", err)
	}
	if c.PasswordFile == "" && !loopback(host) {
		return errors.New("--listen: other machines can reach this address: give --password-file too, or listen on localhost")
	}
	return nil
}

func loopback(host string) bool {
	addr, err := netip.ParseAddr(host)
	return host == "localhost" || err == nil && addr.IsLoopback()
}

// Run serves until a signal comes.
func (c *dashboardCommand) Run(ctx context.Context, std streams) (err error) {
	password, err := c.password()
	if err != nil {
		return err
	}
	log := (&namedQueue{Verbose: c.Verbose}).logger(std, slog.LevelError)
	source, done, err := c.source(ctx, delayq.WithLogger(log))
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, done()) }()
	opts := []dashboard.Option{dashboard.WithLogger(log), dashboard.Authorize(dashboard.Loopback)}
	if password != "" {
		opts = append(opts, dashboard.Authorize(func(*http.Request, dashboard.Action, string) error { return nil })) // withPassword has asked
	}
	if !c.Write {
		opts = append(opts, dashboard.ReadOnly())
	}
	pages, err := dashboard.New(source, opts...)
	if err != nil {
		return err //nolint:wrapcheck // it says all
	}
	defer func() { err = errors.Join(err, pages.Close()) }()
	return c.serve(ctx, std, withPassword(password, pages), func() { _ = pages.Close() })
}

// serve serves until ctx ends, and then calls closing, which ends the streams of open pages.
func (c *dashboardCommand) serve(ctx context.Context, std streams, pages http.Handler, closing func()) error {
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", c.Listen)
	if err != nil {
		return err //nolint:wrapcheck // it says all
	}
	server := &http.Server{
		// A stream sets deadlines of its own.
		Handler: pages, ReadHeaderTimeout: 10 * time.Second, ReadTimeout: time.Minute, WriteTimeout: time.Minute, IdleTimeout: time.Minute,
		MaxHeaderBytes: 64 << 10,
		ErrorLog:       slog.NewLogLogger(slog.DiscardHandler, slog.LevelDebug),
	}
	mode := "read-only; --write allows changes"
	if c.Write {
		mode = "with changes"
	}
	if err := write(std.out, fmt.Sprintf("http://%s/ (%s)\n", listener.Addr(), mode)); err != nil {
		return errors.Join(err, listener.Close())
	}
	ended := make(chan error, 1)
	go func() { ended <- server.Serve(listener) }()
	select {
	case err := <-ended:
		return err
	case <-ctx.Done():
	}
	closing()
	within, cancel := context.WithTimeout(context.WithoutCancel(ctx), 5*time.Second)
	defer cancel()
	if server.Shutdown(within) != nil {
		_ = server.Close()
	}
	return nil
}

func (c *dashboardCommand) password() (string, error) {
	if c.PasswordFile == "" {
		return "", nil
	}
	text, err := os.ReadFile(string(c.PasswordFile))
	if err != nil {
		return "", fmt.Errorf("--password-file: %w", err)
	}
	if password := strings.TrimSpace(string(text)); len(password) >= 8 {
		return password, nil
	}
	return "", errors.New("--password-file: expected a password of 8 bytes or more")
}

// withPassword asks browsers for a password before anything else.
func withPassword(password string, next http.Handler) http.Handler {
	if password == "" {
		return next
	}
	want := sha256.Sum256([]byte(password))
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, given, _ := r.BasicAuth()
		if got := sha256.Sum256([]byte(given)); subtle.ConstantTimeCompare(got[:], want[:]) != 1 {
			w.Header().Set("WWW-Authenticate", `Basic realm="delayq", charset="UTF-8"`)
			http.Error(w, "a password is needed", http.StatusUnauthorized)
			return
		}
		next.ServeHTTP(w, r)
	})
}

// source connects to the stores. done closes them.
func (c *dashboardCommand) source(ctx context.Context, opts ...delayq.Option) (s dashboard.Source, done func() error, err error) {
	var stores []backend.Backend
	done = func() (err error) {
		for _, b := range stores {
			err = errors.Join(err, b.Close())
		}
		return err
	}
	sources := make(map[string]dashboard.Source)
	for _, raw := range c.URLs {
		b, names, err := openListed(ctx, raw)
		if err != nil {
			return nil, nil, errors.Join(err, done())
		}
		stores = append(stores, b)
		s = dashboard.Backend(b, names, opts...)
		sources[storeKey(raw, sources)] = s
	}
	if len(sources) > 1 {
		s = dashboard.Join(sources)
	}
	return s, done, nil
}

// openListed opens a store whose queues can be shown: it lists them, or the URL names one.
func openListed(ctx context.Context, raw string) (backend.Backend, []string, error) {
	b, name, err := openStore(ctx, raw)
	switch {
	case err != nil:
		return nil, nil, err
	case name != "":
		return b, []string{name}, nil
	}
	if _, err := delayq.Queues(ctx, b); errors.Is(err, delayq.ErrUnsupported) {
		return nil, nil, errors.Join(fmt.Errorf("this store cannot list its queues: expected a URL with a queue: %w", err), b.Close())
	}
	return b, nil, nil
}

// storeKey names a store among several.
func storeKey(raw string, taken map[string]dashboard.Source) string {
	key := "store"
	if u, err := url.Parse(raw); err == nil {
		switch {
		case u.Host != "":
			key = u.Scheme + "@" + u.Host
		case u.Path != "":
			key = u.Scheme + "@" + path.Base(path.Dir(u.Path))
		}
	}
	unique := key
	for n := 2; taken[unique] != nil; n++ {
		unique = fmt.Sprintf("%s-%d", key, n)
	}
	return unique
}
