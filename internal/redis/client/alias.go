package client

import (
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/delayq/delayq/backend"
)

// Names of parameters in the URLs of go-redis, and ours for the same.
var renamed = map[string]string{
	"master_name": "master",
	"skip_verify": "tls_insecure",
}

// Native translates a URL as REDIS_URL has them into one of a backend's own scheme:
//
//	redis://[USER:PASSWORD@][HOST][:PORT][/DATABASE]
//	rediss://…                       the same with TLS
//	unix://[USER:PASSWORD@]/PATH     a socket; the database is db=N
//
// The parameters are those of the backend's URLs, without "tls" and "socket".
func Native(u *url.URL, scheme, queue string) (*url.URL, error) {
	if strings.Contains(u.Path+u.Fragment+u.Opaque, "@") && u.Scheme != "unix" {
		return nil, errSpilled
	}
	params, err := nativeParams(u)
	if err != nil {
		return nil, err
	}
	native := &url.URL{Scheme: scheme, User: u.User, Host: u.Host, Path: "/" + queue, RawPath: "/" + url.PathEscape(queue), Fragment: u.Fragment}
	switch {
	case u.Scheme == "unix" && (u.Host != "" || u.Opaque != ""):
		return nil, backend.Invalid("URL", hidden, "unix:///PATH, with the path of a socket, percent-encoded")
	case u.Scheme == "unix":
		params = append(params, "socket="+url.QueryEscape(u.Path))
	default:
		if native.Hostname() == "" {
			native.Host = "localhost" + u.Host
		}
		db, err := database(u, params)
		if err != nil {
			return nil, err
		}
		params = append(params, db...)
	}
	if u.Scheme == "rediss" {
		params = append(params, "tls=true")
	}
	native.RawQuery = strings.Join(params, "&")
	return native, nil
}

// nativeParams returns the parameters as they are encoded, under our names.
func nativeParams(u *url.URL) ([]string, error) {
	var params []string
	for pair := range strings.SplitSeq(u.RawQuery, "&") {
		name, value, _ := strings.Cut(pair, "=")
		switch ours := renamed[name]; {
		case name == "tls" || name == "socket":
			return nil, backend.Invalid("URL parameter", name, "none with "+u.Scheme+"://; rediss:// is TLS, and unix:// a socket")
		case ours != "":
			params = append(params, ours+"="+value)
		case pair != "":
			params = append(params, pair)
		}
	}
	return params, nil
}

// database returns the parameter for the database that a path names. Database 0 needs none, so that
// a Cluster's URL may end in /0.
func database(u *url.URL, params []string) ([]string, error) {
	name := strings.Trim(u.Path, "/")
	if name == "" {
		return nil, nil
	}
	n, err := strconv.ParseUint(name, 10, 31)
	switch {
	case err != nil && strings.Contains(u.RawQuery, "@"): // the path may be the rest of a password
		return nil, errSpilled
	case err != nil:
		return nil, backend.Invalid("URL path", u.Path, `a database's number, as in "/0"; the queue's name is queue=NAME, or the option Named`)
	case slices.ContainsFunc(params, func(p string) bool { return strings.HasPrefix(p, "db=") }):
		return nil, backend.Invalid("URL path", u.Path, "a database in the path or in db=N, not in both")
	case n == 0:
		return nil, nil
	}
	return []string{"db=" + strconv.FormatUint(n, 10)}, nil
}
