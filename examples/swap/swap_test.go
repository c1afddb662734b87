package main

import (
	"bytes"
	"context"
	"log/slog"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/delayq/delayq"
	"github.com/delayq/delayq/internal/testenv"
)

func TestMain(m *testing.M) { testenv.Main(m) }

const said = `due after 300ms, attempt 1, early: false
due after 600ms, attempt 1, early: false
due after 900ms, attempt 1, early: false
due after 600ms, attempt 2, early: false
`

// Every store makes the program say the same; RabbitMQ, which lacks Ordering, in any order.
func TestSwap(t *testing.T) {
	t.Parallel()
	for scheme, at := range map[string]func(*testing.T) string{
		"memory":   func(*testing.T) string { return "memory:///swap" },
		"zsetpoll": onRedis, "keyspace": onRedis, "redisson": onRedis,
		"rabbitmq": func(t *testing.T) string {
			broker := strings.Replace(testenv.SharedRabbitMQ(t).URL(), "amqp://", "rabbitmq://", 1)
			testenv.WarmRabbit(t, func() (delayq.Queue, error) {
				return delayq.Open(t.Context(), broker+"/other?namespace=swap", delayq.WithLogger(slog.New(slog.DiscardHandler)))
			})
			return broker + "/swap?namespace=swap"
		},
	} {
		t.Run(scheme, func(t *testing.T) {
			t.Parallel()
			u, err := url.Parse(at(t))
			if err != nil {
				t.Fatal(err)
			}
			u.Scheme = scheme
			if u.Path == "" || u.Path == "/" {
				u.Path = "/swap-" + scheme
			}
			ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
			defer cancel()
			var out bytes.Buffer
			if err := run(ctx, u.String(), &out); err != nil {
				t.Fatal(err)
			}
			got, want := strings.SplitAfter(out.String(), "\n"), strings.SplitAfter(said, "\n")
			if scheme == "rabbitmq" {
				slices.Sort(got)
				slices.Sort(want)
			}
			if !slices.Equal(got, want) {
				t.Errorf("it said\n%swant\n%s", out.String(), said)
			}
		})
	}
}

func onRedis(t *testing.T) string {
	at, _, _ := strings.Cut(testenv.SharedRedis(t).URL(), "?")
	return at
}
