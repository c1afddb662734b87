package store

import (
	"errors"
	"strconv"
	"strings"
	"time"

	"github.com/delayq/delayq/internal/redis/script"
)

// Wait has pushes wait. The option's name is for the error.
func (c *Config) Wait(option string, to script.Confirmation) {
	c.Err = errors.Join(c.Err, to.Valid(option))
	c.Confirm = to
}

// WaitParam reads "REPLICAS,DURATION", as in a URL.
func WaitParam[Option any](option func(int, time.Duration) Option, add func(Option) (allowed string)) func(string) string {
	return func(value string) string {
		count, within, _ := strings.Cut(value, ",")
		n, err := strconv.Atoi(count)
		d, err2 := time.ParseDuration(within)
		if err != nil || err2 != nil {
			return `how many replicas and for how long, as "1,500ms"`
		}
		return add(option(n, d))
	}
}
