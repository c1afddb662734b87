package main

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/delayq/delayq"
	"github.com/delayq/delayq/backend"
	"github.com/delayq/delayq/webhook"
)

// webhookFlags have the server post the messages of some queues to URLs.
type webhookFlags struct {
	To          []string      `name:"webhook" sep:"none" placeholder:"QUEUE=URL" help:"Post each message of a queue to a URL when it is due. May be given several times."`
	Allow       []string      `name:"webhook-allow" sep:"none" placeholder:"QUEUE=URL" help:"Post a message of a queue to the URL in its header webhook-url, if that begins with this one. May be given several times."`
	SecretFiles []string      `name:"webhook-secret-file" sep:"none" placeholder:"[QUEUE=]FILE" help:"Sign the requests with the secrets in this file, one a line: 24 bytes or more, or whsec_ and the base64 of as many. May be given several times, for queues of their own."`
	Workers     int           `name:"webhook-workers" default:"16" placeholder:"N" help:"How many messages of a queue are posted at the same time."`
	Timeout     time.Duration `name:"webhook-timeout" default:"30s" placeholder:"DURATION" help:"How long a request may take (allowed: 1s to 10m)."`
	Retry       retryFlag     `name:"webhook-retry" default:"exponential" placeholder:"POLICY" help:"How long a message waits after a failure, as --retry of \"delayq consume\" says it."`
	MaxAttempts *int          `name:"webhook-max-attempts" placeholder:"N" help:"After how many failures a message is dead, 25 unless given; 0 is never."`
}

// open returns a function that posts the messages of a queue until its context ends, for each queue.
func (f webhookFlags) open(ctx context.Context, b backend.Backend, opts ...delayq.Option) (_ []func(context.Context) error, shut func() error, err error) {
	options, err := f.options()
	if err != nil {
		return nil, nil, err
	}
	consuming := []delayq.ConsumeOption{delayq.Workers(f.Workers)}
	if f.MaxAttempts != nil {
		consuming = append(consuming, delayq.MaxAttempts(*f.MaxAttempts))
	}
	if f.Retry.policy != nil {
		consuming = append(consuming, delayq.Retry(f.Retry.policy))
	}
	var queues []delayq.Queue
	shut = func() (err error) {
		for _, q := range queues {
			err = errors.Join(err, q.Close())
		}
		return err
	}
	var posts []func(context.Context) error
	for name, handling := range options {
		h, err := webhook.New(handling...)
		if err == nil {
			err = delayq.ValidateConsumeOptions(consuming...)
		}
		var q delayq.Queue
		if err == nil {
			q, err = delayq.New(ctx, name, append(opts, delayq.WithBackend(b))...)
		}
		if err != nil {
			return nil, nil, errors.Join(fmt.Errorf("the webhook of queue %s: %w", name, err), shut())
		}
		queues = append(queues, q)
		if f.MaxAttempts != nil && *f.MaxAttempts > 0 && !q.Supports(delayq.CountingAttempts) { // Consume would say so when the server runs
			return nil, nil, errors.Join(fmt.Errorf("--webhook-max-attempts: %w", &delayq.UnsupportedError{Backend: b.Traits().Name, Op: "MaxAttempts"}), shut())
		}
		posts = append(posts, func(ctx context.Context) error { return q.Consume(ctx, h, consuming...) })
	}
	return posts, shut, nil
}

// options returns those of each queue.
func (f webhookFlags) options() (map[string][]webhook.Option, error) {
	byQueue := make(map[string][]webhook.Option)
	for _, text := range f.To {
		name, url, ok := strings.Cut(text, "=")
		if _, twice := byQueue[name]; !ok || name == "" || twice {
			return nil, errors.New("--webhook: allowed is QUEUE=URL, one of each queue")
		}
		byQueue[name] = []webhook.Option{webhook.To(url)}
	}
	for _, text := range f.Allow {
		name, url, ok := strings.Cut(text, "=")
		if !ok || name == "" {
			return nil, errors.New("--webhook-allow: allowed is QUEUE=URL")
		}
		byQueue[name] = append(byQueue[name], webhook.Allow(url))
	}
	if len(byQueue) == 0 && len(f.SecretFiles) > 0 {
		return nil, errors.New("--webhook-secret-file: needs --webhook or --webhook-allow")
	}
	for name := range byQueue {
		byQueue[name] = append(byQueue[name], webhook.Timeout(f.Timeout))
	}
	for _, text := range f.SecretFiles {
		if err := sign(byQueue, text); err != nil {
			return nil, fmt.Errorf("--webhook-secret-file: %w", err)
		}
	}
	return byQueue, nil
}

// sign adds the secrets of [QUEUE=]FILE. An empty name is no file, so that a variable that is not set
// leaves nothing unsigned.
func sign(byQueue map[string][]webhook.Option, text string) error {
	names, file := slices.Collect(maps.Keys(byQueue)), text
	if name, rest, ok := strings.Cut(text, "="); ok && byQueue[name] != nil {
		names, file = []string{name}, rest
	}
	secrets, err := readSecrets(file)
	if err != nil {
		return err
	}
	for _, name := range names {
		for _, secret := range secrets {
			byQueue[name] = append(byQueue[name], webhook.Secret(secret))
		}
	}
	return nil
}

// readSecrets returns the lines of a file that are not blank, one at least.
func readSecrets(name string) (secrets []string, err error) {
	content, err := os.ReadFile(name)
	if err != nil {
		return nil, err
	}
	text := strings.TrimPrefix(string(content), "\uFEFF") // as editors of Windows begin a file
	for line := range strings.Lines(text) {
		if line = strings.TrimSpace(line); line != "" {
			secrets = append(secrets, line)
		}
	}
	if secrets == nil {
		return nil, errors.New("expected a secret on each line: 24 bytes or more, or whsec_ and the base64 of as many")
	}
	return secrets, nil
}

// beside runs the posts beside a server, and ends both together. Messages that are being posted have
// the time that Consume gives them.
func beside(ctx context.Context, serve func(context.Context) error, posts []func(context.Context) error) error {
	ctx, end := context.WithCancel(ctx)
	defer end()
	errs := make([]error, len(posts))
	var running sync.WaitGroup
	for i, post := range posts {
		running.Go(func() {
			defer end()
			errs[i] = post(ctx)
		})
	}
	err := serve(ctx)
	end()
	running.Wait()
	return errors.Join(append(errs, err)...)
}
