package main

import (
	"bytes"
	"flag"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/pvbind/pvbind/examples/cluster/program"
)

// parse is the options that a command line gives.
func parse(t *testing.T, args ...string) *options {
	t.Helper()
	o := &options{}
	require.NoError(t, pvextender(o).Parse(args, nil))
	return o
}

func TestDefaults(t *testing.T) {
	assert.Equal(t, &options{
		Common: program.Common{QPS: -1, Burst: 200, LogFormat: "text"},
		listen: "127.0.0.1:8888", readTimeout: 30 * time.Second, bindTimeout: 10 * time.Minute, shutdownTimeout: 10 * time.Second,
		maxRequestBytes: 4 << 20,
	}, parse(t))
}

func TestFlagsThatCannotBe(t *testing.T) {
	for args, want := range map[string]string{
		"--listen=8888":            "--listen: address 8888: missing port in address",
		"--tls-cert-file=a":        "--tls-cert-file and --tls-private-key-file need each other",
		"--tls-private-key-file=a": "--tls-cert-file and --tls-private-key-file need each other",
		"--read-timeout=0":         "--read-timeout is 0s, not positive",
		"--bind-timeout=-1s":       "--bind-timeout is -1s, not positive",
		"--shutdown-timeout=0":     "--shutdown-timeout is 0s, not positive",
		"--max-request-bytes=0":    "--max-request-bytes is 0, less than 1",
	} {
		assert.EqualError(t, pvextender(&options{}).Parse(strings.Fields(args), nil), want, args)
	}
}

func TestHelp(t *testing.T) {
	var help bytes.Buffer
	require.ErrorIs(t, pvextender(&options{}).Parse([]string{"--help"}, &help), flag.ErrHelp)
	assert.Contains(t, help.String(), usage)
	assert.Contains(t, help.String(), "-tls-cert-file")
}
