package client

import (
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"net/url"
	"os"

	"github.com/delayq/delayq/backend"
)

// tlsFiles are the parameters of TLS.
type tlsFiles struct {
	on, insecure              bool
	serverName, ca, cert, key string
}

// secure sets up TLS. Without tls_server_name a server's certificate must have the host that was
// dialled.
func (t *Target) secure(*url.URL) error {
	if !t.tls.on {
		return nil
	}
	c := &tls.Config{
		MinVersion:         tls.VersionTLS12,
		ServerName:         t.tls.serverName,
		InsecureSkipVerify: t.tls.insecure,
	}
	if err := t.tls.authorities(c); err != nil {
		return err
	}
	if err := t.tls.identity(c); err != nil {
		return err
	}
	t.Options.TLSConfig = c
	return nil
}

func (f tlsFiles) authorities(c *tls.Config) error {
	if f.ca == "" {
		return nil
	}
	pem, err := readPEM(f.ca)
	if err != nil {
		return backend.Invalid("URL parameter tls_ca", f.ca, "a PEM file that can be read: "+err.Error())
	}
	c.RootCAs = x509.NewCertPool()
	if !c.RootCAs.AppendCertsFromPEM(pem) {
		return backend.Invalid("URL parameter tls_ca", f.ca, "a file with certificates in PEM")
	}
	return nil
}

func (f tlsFiles) identity(c *tls.Config) error {
	if f.cert == "" {
		return nil
	}
	own, err := f.pair()
	if err != nil {
		return backend.Invalid("URL parameter tls_cert", f.cert, "a PEM file that can be read, with its key in tls_key: "+err.Error())
	}
	c.Certificates = []tls.Certificate{own}
	return nil
}

func (f tlsFiles) pair() (tls.Certificate, error) {
	cert, err := readPEM(f.cert)
	if err != nil {
		return tls.Certificate{}, err
	}
	key, err := readPEM(f.key)
	if err != nil {
		return tls.Certificate{}, err
	}
	return tls.X509KeyPair(cert, key)
}

// largestPEM is some ten times the size of all public authorities together.
const largestPEM = 4 << 20

// readPEM reads a regular file of at most largestPEM bytes: a device would never end, and a pipe
// might never begin.
func readPEM(path string) ([]byte, error) {
	info, err := os.Stat(path)
	switch {
	case err != nil: // reading has the better words for it
	case !info.Mode().IsRegular():
		return nil, fmt.Errorf("%s is no regular file", path)
	case info.Size() > largestPEM:
		return nil, fmt.Errorf("%s has %d bytes, more than %d", path, info.Size(), largestPEM)
	}
	return os.ReadFile(path)
}
