package main

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"net/http"
	"time"
)

// compatListener serves the protocols of clients that cannot send a key.
type compatListener struct {
	http *http.Server
}

// serveCompat listens on address for OpenEnv and NeMo-Gym. Whoever reaches it can make rollouts, so an
// address that is not this machine's own is warned of. "" is no listener.
func serveCompat(ctx context.Context, address string, h http.Handler, log *slog.Logger, failed chan<- error) (*compatListener, error) {
	if address == "" {
		return &compatListener{}, nil
	}
	l, err := listen(ctx, address)
	if err != nil {
		return nil, err
	}
	if tcp, ok := l.Addr().(*net.TCPAddr); ok && !tcp.IP.IsLoopback() {
		log.Warn("whoever reaches the compat listener can make rollouts, without a key", "address", l.Addr().String())
	}
	s := &http.Server{Handler: h, ReadHeaderTimeout: 10 * time.Second, ErrorLog: slog.NewLogLogger(log.Handler(), slog.LevelDebug)}
	go func() {
		if err := s.Serve(l); !errors.Is(err, http.ErrServerClosed) {
			failed <- err
		}
	}()
	log.Info("serving OpenEnv and NeMo-Gym without a key", "url", "http://"+l.Addr().String())
	return &compatListener{s}, nil
}

// close ends it at once: its clients' rollouts stay, and go with their leases.
func (c *compatListener) close() error {
	if c == nil || c.http == nil {
		return nil
	}
	return c.http.Close()
}
