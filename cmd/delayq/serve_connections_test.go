//go:build unix

package main

import (
	"errors"
	"net"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/delayq/delayq/internal/testenv"
)

// TestServeManyConnections opens 10,000 connections that send nothing, or half a request. The server
// goes on, and ends them.
func TestServeManyConnections(t *testing.T) {
	testenv.In(t, testenv.All)
	s := startServe(t, t.TempDir())
	var limit syscall.Rlimit
	mustDo(t, syscall.Getrlimit(syscall.RLIMIT_NOFILE, &limit))
	conns := make([]net.Conn, min(10_000, int(limit.Cur)-1000))
	for i := range conns {
		c, err := net.Dial("tcp", strings.TrimPrefix(s.url, "http://"))
		mustDo(t, err)
		defer func() { _ = c.Close() }()
		if i%2 == 0 {
			_, err = c.Write([]byte("POST /v1/queues/mail/messages HTTP/1.1\r\nHost: localhost\r\nX: "))
			mustDo(t, err)
		}
		conns[i] = c
	}
	queue := "delayq+" + s.url + "/mail"
	runOK(t, "push", queue, "hello", "--id=a")
	runOK(t, "consume", queue, "--count=1").wantOutput(t, "hello")
	for _, c := range conns {
		mustDo(t, c.SetReadDeadline(time.Now().Add(time.Minute)))
		for buffer := make([]byte, 1024); ; {
			_, err := c.Read(buffer)
			if timeout := net.Error(nil); errors.As(err, &timeout) && timeout.Timeout() {
				t.Fatal("the server has not ended a connection that sent no request")
			}
			if err != nil {
				break
			}
		}
	}
	s.stop(t)
	t.Logf("%d connections", len(conns))
}
