package redisurl

import (
	"crypto/tls"
	"crypto/x509"
	"net/url"
	"os"

	"github.com/delayq/delayq/backend"
)

// tlsFiles are the parameters of TLS.
type tlsFiles struct {
	on, insecure              bool
	serverName, ca, cert, key string
}

// secure sets up TLS. Without a name of its own, each server must prove the one it is dialled by.
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
	pem, err := os.ReadFile(f.ca)
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
	own, err := tls.LoadX509KeyPair(f.cert, f.key)
	if err != nil {
		return backend.Invalid("URL parameter tls_cert", f.cert, "a PEM file that can be read, with its key in tls_key: "+err.Error())
	}
	c.Certificates = []tls.Certificate{own}
	return nil
}
