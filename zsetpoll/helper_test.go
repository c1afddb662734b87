package zsetpoll_test

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"strconv"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/delayq/delayq/backend"
	"github.com/delayq/delayq/zsetpoll"
)

// The variables that make the test binary a worker that keeps its leases until it is killed.
const (
	helperURL   = "DELAYQ_TEST_WORKER_URL"
	helperQueue = "DELAYQ_TEST_WORKER_QUEUE"
	helperMode  = "DELAYQ_TEST_WORKER_MODE"
	helperLease = "DELAYQ_TEST_WORKER_LEASE"
)

// runHelper does not return in a process that is to be a worker.
func runHelper() {
	url := os.Getenv(helperURL)
	if url == "" {
		return
	}
	if err := work(url); err != nil {
		fmt.Fprintln(os.Stderr, "worker:", err)
	}
	os.Exit(1)
}

func work(url string) error {
	opt, err := redis.ParseURL(url)
	if err != nil {
		return err
	}
	mode, err := strconv.Atoi(os.Getenv(helperMode))
	if err != nil {
		return err
	}
	lease, err := time.ParseDuration(os.Getenv(helperLease))
	if err != nil {
		return err
	}
	b := zsetpoll.New(redis.NewClient(opt), zsetpoll.Claims(zsetpoll.Mode(mode)))
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	q, err := b.Open(ctx, os.Getenv(helperQueue), backend.Options{Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		return err
	}
	for {
		ds, err := q.Receive(ctx, 100, lease)
		if err != nil {
			return err
		}
		for _, d := range ds {
			if _, err := fmt.Fprintln(os.Stdout, d.ID, d.Attempt, d.Until.UnixMilli()); err != nil {
				return err
			}
		}
	}
}
