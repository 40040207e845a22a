package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"

	"github.com/pvbind/pvbind/binding/clientgo"
	"github.com/pvbind/pvbind/binding/decision"
)

// Serve works until the context ends, or something fails that only a restart can repair.
func (o *options) Serve(ctx context.Context, log *slog.Logger) error {
	clients, err := o.connect()
	if err != nil {
		return err
	}
	health, registry := newHealth(), prometheus.NewRegistry()
	registry.MustRegister(collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	hangUp, err := o.listen(health.handler(registry), log)
	if err != nil {
		return fmt.Errorf("--bind-address: %w", err)
	}
	defer hangUp()
	recording, stop := context.WithCancel(context.WithoutCancel(ctx))
	defer stop()
	runner := o.runner(clients, health, log)
	runner.Recorder = clientgo.StartRecorder(recording, clients.other)
	runner.Registerer = registry
	defer context.AfterFunc(ctx, func() {
		health.is(stopping)
		log.Info("stopping: what has begun is finished")
	})()
	work := func(ctx context.Context) error {
		health.is(filling)
		log.Info("filling the caches")
		return runner.Run(ctx)
	}
	if !o.elect {
		return work(ctx)
	}
	health.is(standby)
	log.Info("waiting for the lease", "namespace", o.election.namespace, "name", o.election.name)
	return o.election.lead(ctx, clients.other, health.lease, work)
}

func (o *options) runner(clients clients, health *health, log *slog.Logger) *clientgo.Runner {
	runner := &clientgo.Runner{
		Clientset: clients.work,
		Workers:   o.workers,
		Resync:    o.resync,
		Logger:    log,
		Synced: func() {
			health.is(working)
			log.Info("working", "workers", o.workers)
		},
	}
	if o.resync == 0 {
		runner.Resync = -1
	}
	if !o.protection {
		runner.Options.Protection = decision.ProtectionOff
	}
	if !o.watchPods {
		runner.Pods = clientgo.PodsIgnored
	}
	return runner
}

// listen serves health and metrics until hangUp is called.
func (o *options) listen(handler http.Handler, log *slog.Logger) (hangUp func(), err error) {
	if o.address == "" {
		return func() {}, nil
	}
	listener, err := net.Listen("tcp", o.address)
	if err != nil {
		return nil, err
	}
	log.Info("serving health and metrics", "address", listener.Addr().String())
	server := &http.Server{Handler: handler, ReadHeaderTimeout: 10 * time.Second}
	go func() {
		if err := server.Serve(listener); !errors.Is(err, http.ErrServerClosed) {
			log.Error("serving health and metrics ended", "error", err)
		}
	}()
	return func() { _ = server.Close() }, nil
}
