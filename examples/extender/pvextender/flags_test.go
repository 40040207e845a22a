package main

import (
	"bytes"
	"context"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestDefaults(t *testing.T) {
	o, err := parse(nil, nil)
	require.NoError(t, err)
	assert.Equal(t, options{
		qps: -1, burst: 200,
		listen: "127.0.0.1:8888", readTimeout: 30 * time.Second, bindTimeout: 10 * time.Minute, shutdownTimeout: 10 * time.Second,
		maxRequestBytes: 4 << 20, logFormat: "text",
	}, o)
}

func TestFlagsThatCannotBe(t *testing.T) {
	for args, want := range map[string]string{
		"--nonsense":                           "flag provided but not defined: -nonsense",
		"now":                                  `unexpected argument "now"`,
		"--kube-api-qps=0":                     "--kube-api-qps is 0",
		"--kube-api-qps=20 --kube-api-burst=0": "--kube-api-burst is 0, less than 1",
		"--listen=8888":                        "--listen: address 8888: missing port in address",
		"--tls-cert-file=a":                    "--tls-cert-file and --tls-private-key-file need each other",
		"--tls-private-key-file=a":             "--tls-cert-file and --tls-private-key-file need each other",
		"--read-timeout=0":                     "--read-timeout is 0s, not positive",
		"--bind-timeout=-1s":                   "--bind-timeout is -1s, not positive",
		"--shutdown-timeout=0":                 "--shutdown-timeout is 0s, not positive",
		"--max-request-bytes=0":                "--max-request-bytes is 0, less than 1",
		"--logging-format=xml":                 `--logging-format is neither text nor json: "xml"`,
		"--v=-1":                               "--v is negative: -1",
	} {
		var stdout, stderr bytes.Buffer
		assert.Equal(t, exitUsage, run(context.Background(), strings.Fields(args), &stdout, &stderr), args)
		assert.Equal(t, "pvextender: "+want+"\nRun pvextender --help for its flags.\n", stderr.String())
		assert.Empty(t, stdout.String())
	}
}

func TestHelp(t *testing.T) {
	var stdout, stderr bytes.Buffer
	assert.Equal(t, exitOK, run(context.Background(), []string{"--help"}, &stdout, &stderr))
	assert.Contains(t, stdout.String(), "-tls-cert-file")
	assert.Empty(t, stderr.String())
}
