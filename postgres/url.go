package postgres

import (
	"context"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/delayq/delayq/backend"
)

// native is the scheme whose path ends in the queue's name: pg://HOST/DATABASE/QUEUE.
const native = "pg"

func init() {
	backend.Register(native, openURL)
	for _, scheme := range []string{"postgres", "postgresql"} {
		backend.RegisterAlias(scheme, func(u *url.URL, queue string) (*url.URL, error) {
			path := u.EscapedPath()
			if strings.Contains(path+u.Fragment+u.Opaque, "@") || strings.Count(path, "/") > 1 || u.Fragment != "" {
				return nil, invalidURL(u.Scheme + "://[user:password@]host[:port]/database?queue=name, percent-encoded")
			}
			if path == "" {
				path = "/"
			}
			to := *u
			to.Scheme, to.Path, to.RawPath = native, strings.TrimSuffix(u.Path, "/")+"/"+queue, strings.TrimSuffix(path, "/")+"/"+url.PathEscape(queue)
			if path == "/" {
				to.Path, to.RawPath = "/"+to.Path, "/"+to.RawPath
			}
			return &to, nil
		})
	}
}

func invalidURL(allowed string) error { return backend.Invalid("URL", "(hidden)", allowed) }

// ownParams are the parameters that are not pgx's.
var ownParams = map[string]func(value string) (Option, error){
	"schema": func(v string) (Option, error) { return Schema(v), nil },
	"prefix": func(v string) (Option, error) { return Prefix(v), nil },
	"poll": func(v string) (Option, error) {
		d, err := time.ParseDuration(v)
		if err != nil {
			return nil, backend.Invalid("URL parameter poll", v, "a duration, as 1s")
		}
		return Poll(d), nil
	},
	"migrate": func(v string) (Option, error) {
		yes, err := strconv.ParseBool(v)
		if err != nil {
			return nil, backend.Invalid("URL parameter migrate", v, "true or false")
		}
		return func(c *config) { c.migrate = yes }, nil
	},
}

// pgxParams are those of pgx. It would pass on others to the server, as settings.
var pgxParams = []string{
	"host", "port", "connect_timeout", "application_name", "target_session_attrs", "options", "search_path", "client_encoding", "timezone",
	"sslmode", "sslcert", "sslkey", "sslrootcert", "sslpassword", "sslsni", "sslnegotiation", "krbsrvname", "krbspn", "channel_binding",
	"servicefile", "service", "passfile", "min_read_buffer_size",
	"default_query_exec_mode", "statement_cache_capacity", "description_cache_capacity",
	"pool_max_conns", "pool_min_conns", "pool_min_idle_conns", "pool_max_conn_lifetime", "pool_max_conn_idle_time", "pool_health_check_period", "pool_max_conn_lifetime_jitter",
}

// openURL reads pg://[USER:PASSWORD@]HOST[:PORT]/DATABASE/QUEUE[?NAME=VALUE&…].
func openURL(ctx context.Context, u *url.URL) (backend.Backend, string, error) {
	cfg, opts, queue, err := parseURL(u)
	if err != nil {
		return nil, "", err
	}
	pool, err := pgxpool.NewWithConfig(ctx, cfg)
	if err != nil {
		return nil, "", invalidURL("one that pgx accepts")
	}
	return New(pool, append(opts, func(c *config) { c.owned = true })...), queue, nil
}

func parseURL(u *url.URL) (*pgxpool.Config, []Option, string, error) {
	path := u.EscapedPath()
	end := strings.LastIndexByte(path, '/')
	if end < 1 || u.Opaque != "" || u.Fragment != "" || strings.Contains(path, "@") {
		return nil, nil, "", invalidURL(native + "://[user:password@]host[:port]/database/queue, percent-encoded")
	}
	queue, err := url.PathUnescape(path[end+1:])
	if err != nil {
		return nil, nil, "", invalidURL("one that is percent-encoded")
	}
	query, err := url.ParseQuery(u.RawQuery)
	if err != nil {
		return nil, nil, "", backend.Invalid("URL parameters", "(hidden)", "name=value&…, percent-encoded")
	}
	opts, err := takeParams(query)
	if err != nil {
		return nil, nil, "", err
	}
	to := *u
	to.Scheme, to.RawQuery = "postgres", query.Encode()
	to.RawPath = path[:end]
	if to.Path, err = url.PathUnescape(to.RawPath); err != nil {
		return nil, nil, "", invalidURL("one that is percent-encoded")
	}
	cfg, err := pgxpool.ParseConfig(to.String())
	if err != nil { // its text might show the password
		return nil, nil, "", invalidURL("one that pgx accepts")
	}
	return cfg, opts, queue, nil
}

// takeParams takes the parameters out of query that are not pgx's.
func takeParams(query url.Values) (opts []Option, err error) {
	for name, values := range query {
		read, ours := ownParams[name]
		switch {
		case !ours && !slices.Contains(pgxParams, name):
			return nil, backend.Invalid("URL parameter", name, "schema, prefix, poll, migrate or one of pgx, as sslmode")
		case len(values) > 1:
			return nil, backend.Invalid("URL parameter", name, "given once")
		case !ours:
			continue
		}
		opt, err := read(values[0])
		if err != nil {
			return nil, err
		}
		opts = append(opts, opt)
		delete(query, name)
	}
	return opts, configure(opts).err
}
