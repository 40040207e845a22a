package main

import (
	"bytes"
	"context"
	"log/slog"
	"net"
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
		qps: -1, burst: 200, contentType: "application/vnd.kubernetes.protobuf",
		workers: 64, resync: 10 * time.Minute, watchPods: true,
		elect:    true,
		election: election{"kube-system", "pvbinder", 15 * time.Second, 10 * time.Second, 2 * time.Second},
		address:  ":8080", logFormat: "text",
	}, o)
}

func TestFlagsThatCannotBe(t *testing.T) {
	for args, want := range map[string]string{
		"--nonsense":                           "flag provided but not defined: -nonsense",
		"now":                                  `unexpected argument "now"`,
		"--workers=many":                       `invalid value "many" for flag -workers: parse error`,
		"--workers=0":                          "--workers is 0, less than 1",
		"--kube-api-qps=0":                     "--kube-api-qps is 0",
		"--kube-api-qps=20 --kube-api-burst=0": "--kube-api-burst is 0, less than 1",
		"--resync=-1s":                         "--resync is negative: -1s",
		"--protection --watch-pods=false":      "--protection needs --watch-pods",
		"--logging-format=xml":                 `--logging-format is neither text nor json: "xml"`,
		"--v=-1":                               "--v is negative: -1",
		"--bind-address=8080":                  "--bind-address: address 8080: missing port in address",
		"--leader-elect-resource-name=":        "--leader-elect-resource-namespace and --leader-elect-resource-name must not be empty",
		"--leader-elect-lease-duration=1ms":    "--leader-elect-lease-duration is 1ms, less than a second",
		"--leader-elect-renew-deadline=15s":    "--leader-elect-renew-deadline is 15s, not less than --leader-elect-lease-duration, 15s",
		"--leader-elect-retry-period=0":        "--leader-elect-retry-period is 0s, not positive",
		"--leader-elect-retry-period=9s":       "--leader-elect-renew-deadline is 10s, not more than 1.2 times --leader-elect-retry-period, 9s",
	} {
		var stdout, stderr bytes.Buffer
		assert.Equal(t, exitUsage, run(context.Background(), strings.Fields(args), &stdout, &stderr), args)
		assert.Equal(t, "pvbinder: "+want+"\nRun pvbinder --help for its flags.\n", stderr.String())
		assert.Empty(t, stdout.String())
	}
}

func TestElectionFlagsDoNotMatterWithoutElection(t *testing.T) {
	_, err := parse([]string{"--leader-elect=false", "--leader-elect-lease-duration=0"}, nil)
	assert.NoError(t, err)
}

func TestHelp(t *testing.T) {
	var stdout, stderr bytes.Buffer
	assert.Equal(t, exitOK, run(context.Background(), []string{"--help"}, &stdout, &stderr))
	assert.Contains(t, stdout.String(), "-leader-elect-lease-duration")
	assert.Empty(t, stderr.String())
}

func TestFailuresAtTheStart(t *testing.T) {
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer taken.Close()
	t.Setenv("KUBERNETES_SERVICE_HOST", "")
	for want, args := range map[string][]string{
		"--kubeconfig: stat /nowhere/kubeconfig: no such file or directory": {"--kubeconfig=/nowhere/kubeconfig"},
		"neither --kubeconfig nor --master is set, and this is no pod":      nil,
		"--bind-address: listen tcp " + taken.Addr().String():               {"--master=http://127.0.0.1:1", "--bind-address=" + taken.Addr().String()},
	} {
		o, err := parse(args, nil)
		require.NoError(t, err)
		assert.ErrorContains(t, o.serve(context.Background(), slog.New(slog.DiscardHandler)), want)
	}
}
