package testenv

import (
	"errors"
	"testing"
)

var sharedRabbit = shared[*runningRabbit]{start: startSharedRabbit}

// Main ends the shared Redis Cluster, and the shared broker with it.
func init() { endWith(&sharedCluster, sharedRabbit.end) }

// SharedRabbitMQ returns the one broker of the test process, for tests that keep to a Vhost of
// their own. The package's TestMain must call Main, which stops it.
func SharedRabbitMQ(tb testing.TB) *RabbitServer {
	tb.Helper()
	running := sharedRabbit.get(tb)
	return &RabbitServer{tb: tb, url: running.url, control: running.control}
}

func startSharedRabbit() (*runningRabbit, func() error, error) {
	running, err := provideRabbit(rabbitSettings{})
	if err != nil {
		return nil, nil, err
	}
	return running, running.stop, nil
}

// endWith makes the end of s call also, whether s was started or not.
func endWith[T any](s *shared[T], also func() error) {
	start := s.start
	s.stop = also
	s.start = func() (T, func() error, error) {
		value, stop, err := start()
		if stop == nil {
			return value, also, err
		}
		return value, func() error { return errors.Join(stop(), also()) }, err
	}
}
