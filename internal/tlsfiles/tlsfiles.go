// Package tlsfiles reads the certificates that a URL's parameters name.
package tlsfiles

import (
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"os"

	"github.com/delayq/delayq/backend"
)

// Files are the values of the parameters tls_ca, tls_cert, tls_key and tls_server_name. The zero
// value verifies servers by the system's certificates.
type Files struct{ CA, Cert, Key, ServerName string }

// Set sets the value of a parameter. It reports false for a parameter that is none of these.
func (f *Files) Set(parameter, value string) bool {
	switch parameter {
	case "tls_ca":
		f.CA = value
	case "tls_cert":
		f.Cert = value
	case "tls_key":
		f.Key = value
	case "tls_server_name":
		f.ServerName = value
	default:
		return false
	}
	return true
}

// Config reads the files. Its errors match backend.ErrInvalid and name the parameter and the file.
func (f Files) Config() (*tls.Config, error) {
	c := &tls.Config{MinVersion: tls.VersionTLS12, ServerName: f.ServerName}
	if f.CA != "" {
		pem, err := readPEM(f.CA)
		if err != nil {
			return nil, backend.Invalid("URL parameter tls_ca", f.CA, "a PEM file that can be read: "+err.Error())
		}
		c.RootCAs = x509.NewCertPool()
		if !c.RootCAs.AppendCertsFromPEM(pem) {
			return nil, backend.Invalid("URL parameter tls_ca", f.CA, "a file with certificates in PEM")
		}
	}
	switch {
	case (f.Cert == "") != (f.Key == ""):
		return nil, backend.Invalid("URL parameters", "one of tls_cert and tls_key", "both, a certificate and its private key, or none")
	case f.Cert != "":
		pair, err := f.pair()
		if err != nil {
			return nil, backend.Invalid("URL parameter tls_cert", f.Cert, "a PEM file that can be read, with its key in tls_key: "+err.Error())
		}
		c.Certificates = []tls.Certificate{pair}
	}
	return c, nil
}

func (f Files) pair() (tls.Certificate, error) {
	cert, err := readPEM(f.Cert)
	if err != nil {
		return tls.Certificate{}, err
	}
	key, err := readPEM(f.Key)
	if err != nil {
		return tls.Certificate{}, err
	}
	return tls.X509KeyPair(cert, key)
}

// largestPEM is ten times the size of a file with all public authorities.
const largestPEM = 4 << 20

// readPEM reads a file of at most largestPEM. It rejects devices and pipes: reading them may never
// end.
func readPEM(path string) ([]byte, error) {
	info, err := os.Stat(path)
	switch {
	case err != nil: // ReadFile returns the better error
	case !info.Mode().IsRegular():
		return nil, fmt.Errorf("%s is no regular file", path)
	case info.Size() > largestPEM:
		return nil, fmt.Errorf("%s has %d bytes, more than %d", path, info.Size(), largestPEM)
	}
	return os.ReadFile(path)
}
