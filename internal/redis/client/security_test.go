package client

import (
	"crypto/x509"
	"net"
	"os"
	"strconv"
	"strings"
	"testing"

	"github.com/delayq/delayq/internal/testenv"
)

// A URL's numbers do not set how much memory is allocated, and a certificate's file is read up to a
// limit.
func TestURLsTakeNoMemory(t *testing.T) {
	t.Parallel()
	server := testenv.Redis(t, testenv.Private())
	at := "zsetpoll://" + server.Addr() + "/orders?pool_size="
	mustConnect(t, at+"100000")
	sparse := t.TempDir() + "/large.pem"
	must(t, os.WriteFile(sparse, nil, 0o600))
	must(t, os.Truncate(sparse, 1<<40))
	for _, rawURL := range []string{
		at + "9223372036854775807", at + "1000000000", "zsetpoll://h/o?tls=true&tls_ca=/dev/zero", "zsetpoll://h/o?tls=true&tls_ca=" + sparse,
		"zsetpoll://h/o?tls=true&tls_cert=/dev/zero&tls_key=/dev/zero", "zsetpoll://h/o?tls=true&tls_ca=" + t.TempDir(),
	} {
		if _, err := parse(t, rawURL); err == nil || !strings.Contains(err.Error(), "invalid URL parameter") {
			t.Errorf("%s: %v", rawURL, err)
		}
	}
}

// Without a name in the URL, a server must prove the host that was dialled.
func TestTLSVerifiesTheHost(t *testing.T) {
	t.Parallel()
	ca := newAuthority(t)
	ca.issue(t, "server", &x509.Certificate{DNSNames: []string{"redis.test"}, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth}})
	l, err := net.Listen("tcp", "127.0.0.1:0")
	must(t, err)
	port := l.Addr().(*net.TCPAddr).Port
	must(t, l.Close())
	testenv.Redis(t, testenv.Directive("tls-port", strconv.Itoa(port)), testenv.Directive("tls-cert-file", ca.file("server.crt")),
		testenv.Directive("tls-key-file", ca.file("server.key")), testenv.Directive("tls-ca-cert-file", ca.file("ca.crt")), testenv.Directive("tls-auth-clients", "no"))
	for _, host := range []string{"127.0.0.1", "localhost"} {
		trusted := "zsetpoll://:hunter2@" + net.JoinHostPort(host, strconv.Itoa(port)) + "/orders?tls=true&tls_ca=" + ca.file("ca.crt")
		mustNotConnect(t, trusted, "certificate", host)
		mustNotConnect(t, trusted+"&cluster=true", "certificate", host)
	}
	mustConnect(t, "zsetpoll://127.0.0.1:"+strconv.Itoa(port)+"/orders?tls=true&tls_server_name=redis.test&tls_ca="+ca.file("ca.crt"))
}
