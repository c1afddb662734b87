package client

import (
	"errors"
	"fmt"
	"maps"
	"math"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/delayq/delayq/backend"
)

// A Param takes the value of a parameter. For a bad value it returns the values allowed, else
// nothing.
type Param func(value string) (allowed string)

// Allowed returns the values that an option's error allows. A Param's error names them with the
// URL's parameter instead of the option. A nil error returns nothing.
func Allowed(err error) string {
	var refused *backend.InvalidError
	if errors.As(err, &refused) {
		return refused.Allowed
	}
	return ""
}

// Params are the parameters that a URL may have, by name.
type Params map[string]Param

func (t *Target) params() Params {
	o := &t.Options
	return Params{
		"addr":              func(v string) string { t.more = append(t.more, v); return "" },
		"cluster":           boolean(&o.IsClusterMode),
		"db":                number(&o.DB, 0, math.MaxInt),
		"dial_timeout":      duration(&o.DialTimeout),
		"master":            text(&o.MasterName),
		"pool_size":         number(&o.PoolSize, 1, mostConnections),
		"read_timeout":      duration(&o.ReadTimeout),
		"sentinel_password": text(&o.SentinelPassword),
		"sentinel_user":     text(&o.SentinelUsername),
		"socket":            socketPath(&t.socket),
		"tls":               boolean(&t.tls),
		"tls_ca":            text(&t.files.CA),
		"tls_cert":          text(&t.files.Cert),
		"tls_insecure":      boolean(&t.insecure),
		"tls_key":           text(&t.files.Key),
		"tls_server_name":   text(&t.files.ServerName),
		"write_timeout":     duration(&o.WriteTimeout),
	}
}

// hidden replaces text that may be a password.
const hidden = "(hidden)"

// secret is the one parameter that is never shown.
const secret = "sentinel_password"

// read passes on all values, in the order of names.
func (p Params) read(query url.Values) error {
	for _, name := range slices.Sorted(maps.Keys(query)) {
		param, ok := p[name]
		if !ok {
			return backend.Invalid("URL parameter", shownName(name, query), "one of "+strings.Join(slices.Sorted(maps.Keys(p)), ", "))
		}
		values := query[name]
		if len(values) > 1 && name != "addr" {
			return backend.Invalid("URL parameter "+name, shown(name, strings.Join(values, " and ")), "one value")
		}
		for _, v := range values {
			if allowed := param(v); allowed != "" {
				return backend.Invalid("URL parameter "+name, shown(name, v), allowed)
			}
		}
	}
	return nil
}

// shownName hides a name that may be the rest of a password with a bare &.
func shownName(name string, query url.Values) string {
	if query.Has(secret) {
		return hidden
	}
	return name
}

func shown(name, value string) string {
	if name == secret {
		return hidden
	}
	return withoutUser(value)
}

// withoutUser hides USER:PASSWORD in a value that has it before a host.
func withoutUser(value string) string {
	if i := strings.LastIndex(value, "@"); i >= 0 {
		return hidden + value[i:]
	}
	return value
}

func text(to *string) Param {
	return func(v string) string {
		if v == "" {
			return "a text that is not empty"
		}
		*to = v
		return ""
	}
}

func boolean(to *bool) Param {
	return func(v string) string {
		if v != "true" && v != "false" {
			return "true or false"
		}
		*to = v == "true"
		return ""
	}
}

// mostConnections is far more than a server accepts. The client library allocates room for all of
// them at once.
const mostConnections = 100_000

func number(to *int, least, most int) Param {
	return func(v string) string {
		n, err := strconv.Atoi(v)
		if err != nil || n < least || n > most {
			return numbers(least, most)
		}
		*to = n
		return ""
	}
}

func numbers(least, most int) string {
	if most == math.MaxInt {
		return fmt.Sprintf("a number, %d or more", least)
	}
	return fmt.Sprintf("a number, %d to %d", least, most)
}

func socketPath(to *string) Param {
	return func(v string) string {
		if !strings.HasPrefix(v, "/") { // the client library takes others for hosts
			return "an absolute path"
		}
		*to = v
		return ""
	}
}

func duration(to *time.Duration) Param {
	return Duration(func(d time.Duration) string {
		if d <= 0 {
			return durations
		}
		*to = d
		return ""
	})
}

const durations = "a duration more than 0, as 500ms or 2s"

// Duration returns a Param for a duration.
func Duration(set func(time.Duration) (allowed string)) Param {
	return func(v string) string {
		d, err := time.ParseDuration(v)
		if err != nil {
			return durations
		}
		return set(d)
	}
}

// Number returns a Param for a whole number.
func Number(set func(int) (allowed string)) Param {
	return func(v string) string {
		n, err := strconv.Atoi(v)
		if err != nil {
			return "a whole number"
		}
		return set(n)
	}
}

// Choice returns a Param for one of some words.
func Choice[T any](words map[string]T, set func(T) (allowed string)) Param {
	return func(v string) string {
		chosen, ok := words[v]
		if !ok {
			return "one of " + strings.Join(slices.Sorted(maps.Keys(words)), ", ")
		}
		return set(chosen)
	}
}
