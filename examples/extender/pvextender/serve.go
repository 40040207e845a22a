package main

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"time"

	"github.com/pvbind/pvbind/examples/extender"
)

// Serve answers until the context ends. It listens only once its caches are filled, so that a connection means that it
// is ready.
func (o *options) Serve(ctx context.Context, log *slog.Logger) error {
	clientset, err := o.connect()
	if err != nil {
		return err
	}
	secrets, err := o.secrets()
	if err != nil {
		return err
	}
	log.Info("filling the caches")
	cluster, err := extender.Watch(ctx, clientset)
	if ctx.Err() != nil {
		return nil // it was stopped before it had begun
	}
	if err != nil {
		return err
	}
	defer cluster.Stop()
	answerer := &extender.Server{
		Cluster: cluster, Clientset: clientset,
		BindTimeout: o.bindTimeout, MaxRequestBytes: o.maxRequestBytes, Logger: log,
	}
	return o.answer(ctx, answerer.Handler(), secrets, log)
}

// secrets returns the certificate to serve with; nil: none.
func (o *options) secrets() (*tls.Config, error) {
	if o.certFile == "" {
		return nil, nil
	}
	certificate, err := tls.LoadX509KeyPair(o.certFile, o.keyFile)
	if err != nil {
		return nil, fmt.Errorf("--tls-cert-file and --tls-private-key-file: %w", err)
	}
	return &tls.Config{Certificates: []tls.Certificate{certificate}, MinVersion: tls.VersionTLS12}, nil
}

// answer serves, and when the context ends lets answers that are under way come to their end.
func (o *options) answer(ctx context.Context, handler http.Handler, secrets *tls.Config, log *slog.Logger) error {
	answering, cut := context.WithCancel(context.WithoutCancel(ctx))
	defer cut()
	server := &http.Server{
		Handler:           handler,
		TLSConfig:         secrets,
		ReadHeaderTimeout: 10 * time.Second,
		ReadTimeout:       o.readTimeout,
		WriteTimeout:      o.readTimeout + o.bindTimeout + time.Minute,
		IdleTimeout:       2 * time.Minute,
		BaseContext:       func(net.Listener) context.Context { return answering },
		ErrorLog:          slog.NewLogLogger(log.Handler(), slog.LevelWarn),
	}
	listener, err := net.Listen("tcp", o.listen)
	if err != nil {
		return fmt.Errorf("--listen: %w", err)
	}
	log.Info("serving", "address", listener.Addr().String(), "tls", secrets != nil)
	ended := make(chan error, 1)
	go func() {
		if secrets == nil {
			ended <- server.Serve(listener)
		} else {
			ended <- server.ServeTLS(listener, "", "")
		}
	}()
	select {
	case err := <-ended:
		return err
	case <-ctx.Done():
	}
	log.Info("stopping: answers that are under way are finished")
	return o.shutDown(server, cut)
}

// endTimeout is how long answers may take that were told to give up.
const endTimeout = 5 * time.Second

// shutDown waits for answers that are under way. Binds that take longer give up, and what they have assumed ends with
// them; what they have written stays, and the next start goes on from there.
func (o *options) shutDown(server *http.Server, cut func()) error {
	err := shutDownWithin(server, o.shutdownTimeout)
	if !errors.Is(err, context.DeadlineExceeded) {
		return err
	}
	cut()
	if err := shutDownWithin(server, endTimeout); err != nil {
		return errors.Join(err, server.Close())
	}
	return nil
}

func shutDownWithin(server *http.Server, timeout time.Duration) error {
	ctx, stop := context.WithTimeout(context.Background(), timeout)
	defer stop()
	return server.Shutdown(ctx)
}
