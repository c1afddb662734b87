package testenv

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/testcontainers/testcontainers-go"
	"github.com/testcontainers/testcontainers-go/modules/redis"
)

const redisImage = "redis:7"

// dockerRuns returns nil when containers can be started. It asks once: without Docker that takes a while.
var dockerRuns = sync.OnceValue(func() (err error) {
	defer func() {
		if r := recover(); r != nil { // testcontainers panics when it finds no Docker
			err = fmt.Errorf("looking for Docker: %v", r)
		}
	}()
	provider, err := testcontainers.ProviderDocker.GetProvider()
	if err != nil {
		return fmt.Errorf("looking for Docker: %w", err)
	}
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	return provider.Health(ctx)
})

func dockerRedis(set settings) (*runningRedis, error) {
	ctx := context.Background() // pulling the image takes as long as it takes
	container, err := redis.Run(ctx, redisImage, testcontainers.WithCmdArgs(set.flags()...))
	stop := func() error { return testcontainers.TerminateContainer(container) }
	if err != nil {
		return nil, errors.Join(fmt.Errorf("starting %s in Docker: %w", redisImage, err), stop())
	}
	url, err := container.ConnectionString(ctx)
	if err != nil {
		return nil, errors.Join(fmt.Errorf("asking Docker for the port of %s: %w", redisImage, err), stop())
	}
	return &runningRedis{url: url, stop: stop}, nil
}
