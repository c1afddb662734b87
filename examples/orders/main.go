// Command orders is an HTTP service whose orders look after themselves: one that is not paid in
// time is cancelled, and one that was shipped and not reviewed gets five stars.
//
//	go run ./examples/orders --unpaid 20s --unreviewed 1m
//	curl -X POST localhost:8080/orders -d '{"item":"a book"}'
//	curl -X POST localhost:8080/orders/1/pay
//	curl -X POST localhost:8080/orders/1/ship
//	curl -X POST localhost:8080/orders/1/review -d '{"stars":4}'
//	curl localhost:8080/orders/1
//
// The orders themselves are kept in this process, where a shop has a database. The queue is where
// --url says, in memory by default:
//
//	go run ./examples/orders --url zsetpoll://localhost:6379/orders
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/delayq/delayq"
	_ "github.com/delayq/delayq/keyspace"
	_ "github.com/delayq/delayq/rabbitmq"
	_ "github.com/delayq/delayq/redisson"
	_ "github.com/delayq/delayq/zsetpoll"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := run(ctx, os.Args[1:], os.Stdout)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "orders:", err)
		os.Exit(1)
	}
}

type settings struct {
	url, addr          string
	unpaid, unreviewed time.Duration
}

func parse(args []string) (s settings, err error) {
	fs := flag.NewFlagSet("orders", flag.ContinueOnError)
	fs.StringVar(&s.url, "url", "memory:///orders", "the queue")
	fs.StringVar(&s.addr, "addr", "localhost:8080", "where to listen")
	fs.DurationVar(&s.unpaid, "unpaid", 30*time.Minute, "how long an order waits for its payment")
	fs.DurationVar(&s.unreviewed, "unreviewed", 7*24*time.Hour, "how long a shipped order waits for its review")
	return s, fs.Parse(args)
}

// run serves until ctx ends.
func run(ctx context.Context, args []string, out io.Writer) error {
	s, err := parse(args)
	if err != nil {
		return err
	}
	log := slog.New(slog.NewTextHandler(out, nil))
	q, err := delayq.Open(ctx, s.url, delayq.WithLogger(log), delayq.Require(delayq.KeepingHeaders, delayq.OwnIDs))
	if err != nil {
		return err
	}
	shop := newShop(q, s, log)
	return errors.Join(shop.serve(ctx, s.addr, out), q.Close())
}

// serve handles requests and due messages, until ctx ends.
func (s *shop) serve(ctx context.Context, addr string, out io.Writer) error {
	l, err := net.Listen("tcp", addr)
	if err != nil {
		return err
	}
	_, _ = fmt.Fprintf(out, "listening on http://%s\n", l.Addr())
	server := &http.Server{Handler: s.routes(), ReadHeaderTimeout: 10 * time.Second}
	served := make(chan error, 1)
	go func() { served <- server.Serve(l) }()
	err = s.queue.Consume(ctx, s.handlers(), delayq.Workers(8))
	shutdown, cancel := context.WithTimeout(context.WithoutCancel(ctx), 10*time.Second)
	defer cancel()
	err = errors.Join(err, server.Shutdown(shutdown))
	if ended := <-served; !errors.Is(ended, http.ErrServerClosed) {
		err = errors.Join(err, ended)
	}
	return err
}
