package main

import (
	"io"
	"log/slog"
	"strconv"

	"k8s.io/klog/v2"
)

// logger is where everything is logged, what client-go says included.
func (o *options) logger(out io.Writer) *slog.Logger {
	settings := &slog.HandlerOptions{Level: slog.Level(-o.verbosity)}
	var handler slog.Handler = slog.NewTextHandler(out, settings)
	if o.logFormat == "json" {
		handler = slog.NewJSONHandler(out, settings)
	}
	log := slog.New(handler)
	klog.SetSlogLogger(log)
	var level klog.Level
	_ = level.Set(strconv.Itoa(o.verbosity)) // it takes every number
	return log
}
