package main

import (
	"bytes"
	"context"
	"flag"
	"log/slog"
	"net"
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
	require.NoError(t, pvbinder(o).Parse(args, nil))
	return o
}

func TestDefaults(t *testing.T) {
	assert.Equal(t, &options{
		Common: program.Common{QPS: -1, Burst: 200, LogFormat: "text"}, contentType: "application/vnd.kubernetes.protobuf",
		workers: 64, resync: 10 * time.Minute, protection: true, watchPods: true,
		elect:    true,
		election: election{"kube-system", "pvbinder", 15 * time.Second, 10 * time.Second, 2 * time.Second},
		address:  ":8080",
	}, parse(t))
}

func TestFlagsThatCannotBe(t *testing.T) {
	for args, want := range map[string]string{
		"--workers=many":                    `invalid value "many" for flag -workers: parse error`,
		"--workers=0":                       "--workers is 0, less than 1",
		"--resync=-1s":                      "--resync is negative: -1s",
		"--watch-pods=false":                "--watch-pods=false needs --protection=false",
		"--bind-address=8080":               "--bind-address: address 8080: missing port in address",
		"--kube-api-content-type=text/json": `--kube-api-content-type is "text/json", none of application/vnd.kubernetes.protobuf, application/json, application/cbor`,
		"--leader-elect-resource-name=":     "--leader-elect-resource-namespace and --leader-elect-resource-name must not be empty",
		"--leader-elect-lease-duration=1ms": "--leader-elect-lease-duration is 1ms, less than a second",
		"--leader-elect-renew-deadline=15s": "--leader-elect-renew-deadline is 15s, not less than --leader-elect-lease-duration, 15s",
		"--leader-elect-retry-period=0":     "--leader-elect-retry-period is 0s, not positive",
		"--leader-elect-retry-period=9s":    "--leader-elect-renew-deadline is 10s, not more than 1.2 times --leader-elect-retry-period, 9s",
	} {
		assert.EqualError(t, pvbinder(&options{}).Parse(strings.Fields(args), nil), want, args)
	}
}

func TestElectionFlagsDoNotMatterWithoutElection(t *testing.T) {
	parse(t, "--leader-elect=false", "--leader-elect-lease-duration=0")
}

func TestHelp(t *testing.T) {
	var help bytes.Buffer
	require.ErrorIs(t, pvbinder(&options{}).Parse([]string{"--help"}, &help), flag.ErrHelp)
	assert.Contains(t, help.String(), usage)
	assert.Contains(t, help.String(), "-leader-elect-lease-duration")
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
		assert.ErrorContains(t, parse(t, args...).Serve(context.Background(), slog.New(slog.DiscardHandler)), want)
	}
}
