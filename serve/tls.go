package serve

import (
	"crypto/tls"
	"log/slog"
	"os"
	"sync"
	"time"
)

// LoadTLS returns a configuration with the certificate and key from two PEM files. It reads them
// again when they change; while they cannot be read, it keeps the last certificate.
func LoadTLS(certFile, keyFile string, log *slog.Logger) (*tls.Config, error) {
	c := &certificate{files: [2]string{certFile, keyFile}, log: log}
	if _, err := c.get(nil); err != nil {
		return nil, err
	}
	return &tls.Config{MinVersion: tls.VersionTLS12, GetCertificate: c.get}, nil
}

type certificate struct {
	files [2]string
	log   *slog.Logger

	mu     sync.Mutex
	now    *tls.Certificate
	when   [2]time.Time // modification times of the files
	warned time.Time
}

// get returns the certificate for a handshake.
func (c *certificate) get(*tls.ClientHelloInfo) (*tls.Certificate, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	when := c.when
	for i, name := range c.files {
		if info, err := os.Stat(name); err == nil {
			when[i] = info.ModTime()
		}
	}
	if c.now != nil && when == c.when {
		return c.now, nil
	}
	pair, err := tls.LoadX509KeyPair(c.files[0], c.files[1])
	switch {
	case err == nil:
		c.now, c.when = &pair, when
	case c.now == nil:
		return nil, err
	case time.Since(c.warned) > warnTime: // handshakes are frequent
		c.warned = time.Now()
		c.log.Error("cannot read the new certificate", "error", err)
	}
	return c.now, nil
}
