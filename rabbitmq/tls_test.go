package rabbitmq_test

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"math/big"
	"net"
	"net/url"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/delayq/delayq/internal/testenv"
)

// TestTLS connects to a broker with a certificate of a private authority.
func TestTLS(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	ca, cert, key := certificates(t, dir, net.IPv4(127, 0, 0, 1))
	user, addr := tlsBroker(t, ca, cert, key)
	text := fmt.Sprintf("rabbitmqs://%s@%s/%s", user, addr, queueOf(t))
	must(t, openURL(t, text+"?tls_ca="+ca))
	must(t, openURL(t, text+"?tls_server_name=localhost&tls_ca="+ca))
	wantError(t, openURL(t, text), "connecting to RabbitMQ", "certificate")
	wantError(t, openURL(t, text+"?tls_server_name=other&tls_ca="+ca), "other")
}

// tlsBroker starts a broker that takes TLS at addr. The broker opens that listener last.
func tlsBroker(t *testing.T, ca, cert, key string) (user *url.Userinfo, addr string) {
	t.Helper()
	addr = freeAddr(t)
	server := testenv.RabbitMQ(t, testenv.PrivateRabbit(), testenv.RabbitConfig("listeners.ssl.1", addr),
		testenv.RabbitConfig("ssl_options.cacertfile", ca), testenv.RabbitConfig("ssl_options.certfile", cert), testenv.RabbitConfig("ssl_options.keyfile", key))
	await(t, "the broker to take TLS", func() bool {
		conn, err := net.Dial("tcp", addr)
		if err == nil {
			_ = conn.Close()
		}
		return err == nil
	})
	u, err := url.Parse(server.URL())
	must(t, err)
	return u.User, addr
}

// certificates writes the certificate of a new authority, and a certificate for localhost and addrs
// with its key.
func certificates(t *testing.T, dir string, addrs ...net.IP) (ca, cert, key string) {
	t.Helper()
	authority := &x509.Certificate{
		SerialNumber: big.NewInt(time.Now().UnixNano()), Subject: pkix.Name{CommonName: "authority"}, NotAfter: time.Now().Add(time.Hour),
		IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign,
	}
	server := &x509.Certificate{
		SerialNumber: big.NewInt(time.Now().UnixNano()), Subject: pkix.Name{CommonName: "localhost"}, NotAfter: time.Now().Add(time.Hour),
		DNSNames: []string{"localhost"}, IPAddresses: addrs,
	}
	authorityKey, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	must(t, err)
	serverKey, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	must(t, err)
	private, err := x509.MarshalPKCS8PrivateKey(serverKey)
	must(t, err)
	return write(t, dir, "CERTIFICATE", sign(t, authority, authority, authorityKey, authorityKey)),
		write(t, dir, "CERTIFICATE", sign(t, server, authority, serverKey, authorityKey)),
		write(t, dir, "PRIVATE KEY", private)
}

func sign(t *testing.T, c, by *x509.Certificate, key, with *ecdsa.PrivateKey) []byte {
	t.Helper()
	der, err := x509.CreateCertificate(rand.Reader, c, by, &key.PublicKey, with)
	must(t, err)
	return der
}

func write(t *testing.T, dir, kind string, der []byte) string {
	t.Helper()
	f, err := os.CreateTemp(dir, "*.pem")
	must(t, err)
	must(t, pem.Encode(f, &pem.Block{Type: kind, Bytes: der}), f.Close())
	return filepath.Clean(f.Name())
}
