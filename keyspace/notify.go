package keyspace

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/redis/go-redis/v9"
)

// setting is the parameter that makes a server tell of expiries.
const setting = "notify-keyspace-events"

// merged returns the flags with the missing ones added, and whether any was missing: E for events
// by kind, and x for expiries, which A includes.
func merged(flags string) (string, bool) {
	all := flags
	if !strings.Contains(flags, "E") {
		all += "E"
	}
	if !strings.ContainsAny(flags, "xA") {
		all += "x"
	}
	return all, all != flags
}

// enable makes the server tell of expiries. Where the server refuses that, it finds out whether an
// operator has done so.
func enable(ctx context.Context, s server, prefix string) error {
	err := setFlags(ctx, s)
	if refused(err) && probe(ctx, s, prefix) == nil {
		return nil
	}
	return err
}

var errHidden = errors.New("the server does not show " + setting)

func setFlags(ctx context.Context, s server) error {
	config, err := s.ConfigGet(ctx, setting).Result()
	if err != nil {
		return fmt.Errorf("reading %s: %w", setting, err)
	}
	flags, shown := config[setting]
	if !shown {
		return errHidden
	}
	all, lacking := merged(flags)
	if !lacking {
		return nil
	}
	if err := s.ConfigSet(ctx, setting, all).Err(); err != nil {
		return fmt.Errorf("%s is %q and cannot be set to %q: %w", setting, flags, all, err)
	}
	return nil
}

// refused reports whether the server has replied.
func refused(err error) bool {
	var reply redis.Error
	return errors.Is(err, errHidden) || errors.As(err, &reply)
}
