// Command rest has one endpoint that delays what it is told:
//
//	go run ./examples/rest
//	curl 'localhost:8080/delayed/message?delay=20&value=AAAA'
//	curl 'localhost:8080/delayed/message?delay=10&value=BBBB'
//
// BBBB comes out after 10 s and AAAA after 20, whatever the order of the requests. The queue is
// where --url says.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
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
		fmt.Fprintln(os.Stderr, "rest:", err)
		os.Exit(1)
	}
}

// run serves until ctx ends.
func run(ctx context.Context, args []string, out io.Writer) error {
	fs := flag.NewFlagSet("rest", flag.ContinueOnError)
	queue := fs.String("url", "memory:///messages", "the queue")
	addr := fs.String("addr", "localhost:8080", "where to listen")
	if err := fs.Parse(args); err != nil {
		return err
	}
	q, err := delayq.Open(ctx, *queue)
	if err != nil {
		return err
	}
	return errors.Join(serve(ctx, q, *addr, out), q.Close())
}

func serve(ctx context.Context, q delayq.Queue, addr string, out io.Writer) error {
	l, err := net.Listen("tcp", addr)
	if err != nil {
		return err
	}
	_, _ = fmt.Fprintf(out, "listening on http://%s\n", l.Addr())
	mux := http.NewServeMux()
	mux.HandleFunc("GET /delayed/message", delayed(q))
	server := &http.Server{Handler: mux, ReadHeaderTimeout: 10 * time.Second}
	served := make(chan error, 1)
	go func() { served <- server.Serve(l) }()
	err = q.Consume(ctx, func(_ context.Context, d *delayq.Delivery) error {
		_, err := fmt.Fprintf(out, "%s\n", d.Body)
		return err
	})
	shutdown, cancel := context.WithTimeout(context.WithoutCancel(ctx), 10*time.Second)
	defer cancel()
	err = errors.Join(err, server.Shutdown(shutdown))
	if ended := <-served; !errors.Is(ended, http.ErrServerClosed) {
		err = errors.Join(err, ended)
	}
	return err
}

// delayed pushes value, due in delay seconds, which may have a fraction.
func delayed(q delayq.Queue) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		delay, err := time.ParseDuration(r.FormValue("delay") + "s")
		if err != nil {
			http.Error(w, "delay must be a number of seconds", http.StatusBadRequest)
			return
		}
		id, err := q.Push(r.Context(), []byte(r.FormValue("value")), delayq.After(delay))
		switch {
		case errors.Is(err, delayq.ErrInvalid):
			http.Error(w, err.Error(), http.StatusBadRequest)
		case err != nil:
			http.Error(w, err.Error(), http.StatusServiceUnavailable)
		default:
			_, _ = fmt.Fprintln(w, id)
		}
	}
}
