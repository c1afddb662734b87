package client

import (
	"net/url"

	"github.com/delayq/delayq/backend"
)

// check rejects parameters that have no effect together with the others.
func (t *Target) check(query url.Values) error {
	cluster, sentinel := t.Options.IsClusterMode, t.Options.MasterName != ""
	for _, rule := range []struct {
		name    string
		refused bool
		allowed string
	}{
		{"master", cluster, "master=NAME or cluster=true, not both"},
		{"socket", cluster || sentinel, "a socket of a single server, without cluster=true and master=NAME"},
		{"socket", t.tls, "a socket without tls=true"},
		{"db", cluster, "no db with cluster=true: a Cluster has only database 0"},
		{"addr", !cluster && !sentinel, "addr with cluster=true or master=NAME only"},
		{"sentinel_user", !sentinel, "sentinel_user with master=NAME only"},
		{"sentinel_user", t.Options.SentinelPassword == "", "sentinel_user with sentinel_password only"},
		{"sentinel_password", !sentinel, "sentinel_password with master=NAME only"},
		{"tls_ca", !t.tls, "tls_ca with tls=true only"},
		{"tls_ca", t.insecure, "tls_ca or tls_insecure=true, not both"},
		{"tls_server_name", !t.tls, "tls_server_name with tls=true only"},
		{"tls_server_name", t.insecure, "tls_server_name or tls_insecure=true, not both"},
		{"tls_insecure", !t.tls, "tls_insecure with tls=true only"},
		{"tls_cert", !t.tls, "tls_cert with tls=true only"},
		{"tls_cert", t.files.Key == "", "tls_cert and tls_key together"},
		{"tls_key", t.files.Cert == "", "tls_cert and tls_key together"},
	} {
		if rule.refused && query.Has(rule.name) {
			return backend.Invalid("URL parameter "+rule.name, shown(rule.name, query.Get(rule.name)), rule.allowed)
		}
	}
	return nil
}
