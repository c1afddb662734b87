package client

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/delayq/delayq/internal/testenv"
)

// authority signs certificates, and keeps them in files of a directory.
type authority struct {
	dir  string
	cert *x509.Certificate
	key  *ecdsa.PrivateKey
}

func newAuthority(t *testing.T) *authority {
	t.Helper()
	a := &authority{dir: t.TempDir()}
	a.cert, a.key = a.issue(t, "ca", &x509.Certificate{
		IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign,
	})
	return a
}

// issue writes NAME.crt and NAME.key. The first certificate signs itself.
func (a *authority) issue(t *testing.T, name string, c *x509.Certificate) (*x509.Certificate, *ecdsa.PrivateKey) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	must(t, err)
	c.SerialNumber, c.Subject = big.NewInt(time.Now().UnixNano()), pkix.Name{CommonName: name}
	c.NotBefore, c.NotAfter = time.Now().Add(-time.Hour), time.Now().Add(time.Hour)
	parent, signer := a.cert, a.key
	if parent == nil {
		parent, signer = c, key
	}
	der, err := x509.CreateCertificate(rand.Reader, c, parent, key.Public(), signer)
	must(t, err)
	secret, err := x509.MarshalPKCS8PrivateKey(key)
	must(t, err)
	must(t, os.WriteFile(a.file(name+".crt"), pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}), 0o600))
	must(t, os.WriteFile(a.file(name+".key"), pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: secret}), 0o600))
	cert, err := x509.ParseCertificate(der)
	must(t, err)
	return cert, key
}

func (a *authority) file(name string) string { return filepath.Join(a.dir, name) }

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// serveTLS starts a server whose certificate is for redis.test and 127.0.0.1, and returns its
// address.
func (a *authority) serveTLS(t *testing.T, authClients string) string {
	t.Helper()
	a.issue(t, "server", &x509.Certificate{
		DNSNames: []string{"redis.test"}, IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
	})
	l, err := net.Listen("tcp", "127.0.0.1:0")
	must(t, err)
	addr := l.Addr().(*net.TCPAddr)
	must(t, l.Close())
	testenv.Redis(t,
		testenv.Directive("tls-port", strconv.Itoa(addr.Port)),
		testenv.Directive("tls-cert-file", a.file("server.crt")),
		testenv.Directive("tls-key-file", a.file("server.key")),
		testenv.Directive("tls-ca-cert-file", a.file("ca.crt")),
		testenv.Directive("tls-auth-clients", authClients),
	)
	return addr.String()
}

func TestConnectWithTLS(t *testing.T) {
	t.Parallel()
	ca := newAuthority(t)
	addr := ca.serveTLS(t, "no")
	at := "zsetpoll://" + addr + "/orders?tls=true"
	trusted := at + "&tls_ca=" + ca.file("ca.crt")
	mustConnect(t, trusted)
	mustConnect(t, trusted+"&tls_server_name=redis.test")
	mustConnect(t, at+"&tls_insecure=true")
	mustNotConnect(t, at, "connecting to "+addr+": ", "certificate signed by unknown authority")
	mustNotConnect(t, trusted+"&tls_server_name=other.test", "not other.test")
	mustNotConnect(t, at+"&tls_ca="+newAuthority(t).file("ca.crt"), "certificate signed by unknown authority")
	mustNotConnect(t, "zsetpoll://"+addr+"/orders", "connecting to "+addr+": ")
}

func TestConnectWithTLSToAPlainServer(t *testing.T) {
	t.Parallel()
	server := testenv.Redis(t, testenv.Private())
	for _, password := range []string{"", ":hunter2@"} {
		mustNotConnect(t, "zsetpoll://"+password+server.Addr()+"/orders?tls=true", "connecting to "+server.Addr()+": ", "leave tls=true out")
	}
	configure(t, server, "config", "set", "requirepass", "hunter2")
	mustNotConnect(t, "zsetpoll://:hunter2@"+server.Addr()+"/orders?tls=true", "leave tls=true out")
	if err := redis.NewClient(&redis.Options{Addr: server.Addr(), Password: "hunter2"}).ConfigSet(t.Context(), "requirepass", "").Err(); err != nil {
		t.Fatal(err)
	}
}

func TestConnectWithACertificate(t *testing.T) {
	t.Parallel()
	ca := newAuthority(t)
	addr := ca.serveTLS(t, "yes")
	ca.issue(t, "worker", &x509.Certificate{ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}})
	trusted := "zsetpoll://" + addr + "/orders?tls=true&tls_ca=" + ca.file("ca.crt")
	mustConnect(t, trusted+"&tls_cert="+ca.file("worker.crt")+"&tls_key="+ca.file("worker.key"))
	// "certificate required", unless the reset is faster
	mustNotConnect(t, trusted, "connecting to "+addr+": ")
}
