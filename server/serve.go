package server

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"time"
)

const (
	headerTimeout  = 10 * time.Second
	idleTimeout    = 2 * time.Minute
	maxHeaderBytes = 32 << 10
	drainWithin    = 10 * time.Second
)

// Serve serves requests on a listener until ctx ends. Then receives that wait end with an empty
// reply, calls that run go on to their end, for up to ten seconds, and the queues are closed.
// Nothing that a client was told to be done is lost. Serve closes the listener. config is nil for
// HTTP without TLS.
func (s *Server) Serve(ctx context.Context, l net.Listener, config *tls.Config) error {
	h := &http.Server{
		Handler: s, TLSConfig: config, ReadHeaderTimeout: headerTimeout, IdleTimeout: idleTimeout, MaxHeaderBytes: maxHeaderBytes,
		ErrorLog: slog.NewLogLogger(s.log.Handler(), slog.LevelDebug),
	}
	defer s.Close()
	served := make(chan error, 1)
	go func() {
		if config != nil {
			served <- h.ServeTLS(l, "", "")
			return
		}
		served <- h.Serve(l)
	}()
	select {
	case err := <-served:
		return fmt.Errorf("serving: %w", err)
	case <-ctx.Done():
	}
	s.Drain()
	within, cancel := context.WithTimeout(context.WithoutCancel(ctx), drainWithin)
	defer cancel()
	err := h.Shutdown(within)
	if errors.Is(err, context.DeadlineExceeded) {
		return errors.Join(fmt.Errorf("calls were still running after %v", drainWithin), h.Close())
	}
	return err
}
