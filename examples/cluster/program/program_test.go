package program_test

import (
	"context"
	"errors"
	"flag"
	"io"
	"log/slog"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/pvbind/pvbind/examples/cluster/program"
	"github.com/pvbind/pvbind/examples/internal/programtest"
)

// greeter is a program with one flag of its own.
type greeter struct {
	program.Common
	whom string
}

func (g *greeter) Define(flags *flag.FlagSet) {
	g.Common.Define(flags)
	flags.StringVar(&g.whom, "whom", "all", "who is greeted")
}

func (g *greeter) Serve(_ context.Context, log *slog.Logger) error {
	log.Info("hello", "whom", g.whom)
	log.Debug("hidden")
	if g.whom == "nobody" {
		return errors.New("nobody is there")
	}
	return nil
}

func greet(stdout, stderr io.Writer, args ...string) int {
	greet := program.Program{Name: "greet", Usage: "Usage: greet [flags]\n", Options: &greeter{}}
	return greet.Run(context.Background(), args, stdout, stderr)
}

func TestFlagsThatCannotBe(t *testing.T) {
	for args, want := range map[string]string{
		"--nonsense":                           "flag provided but not defined: -nonsense",
		"now":                                  `unexpected argument "now"`,
		"--v=many":                             `invalid value "many" for flag -v: parse error`,
		"--kube-api-qps=0":                     "--kube-api-qps is 0",
		"--kube-api-qps=20 --kube-api-burst=0": "--kube-api-burst is 0, less than 1",
		"--logging-format=xml":                 `--logging-format is neither text nor json: "xml"`,
		"--v=-1":                               "--v is negative: -1",
		"--master=::bad":                       `--master: parse "http://::bad": invalid port "::bad" after host`,
		"--master=ftp://server":                `--master is neither http nor https: "ftp://server"`,
	} {
		got := programtest.Run(func(stdout, stderr io.Writer) int { return greet(stdout, stderr, strings.Fields(args)...) })
		assert.Equal(t, programtest.Outcome{Code: program.ExitUsage, Stderr: "greet: " + want + "\nRun greet --help for its flags.\n"}, got, args)
	}
}

func TestHelp(t *testing.T) {
	got := programtest.Run(func(stdout, stderr io.Writer) int { return greet(stdout, stderr, "--help") })
	assert.Equal(t, program.ExitOK, got.Code)
	assert.Empty(t, got.Stderr)
	assert.True(t, strings.HasPrefix(got.Stdout, "Usage: greet [flags]\n"), got.Stdout)
	assert.Contains(t, got.Stdout, "-kube-api-qps")
	assert.Contains(t, got.Stdout, "-whom")
}

func TestTheWorkIsLogged(t *testing.T) {
	var log programtest.Log
	require.Equal(t, program.ExitOK, greet(io.Discard, &log, "--logging-format=json", "--whom=you"))
	assert.Equal(t, "you", log.Find("hello", "whom"))
	assert.Equal(t, "INFO", log.Find("greet ends", "level"))
	assert.Empty(t, log.Find("hidden", "level"))
}

func TestVerbosity(t *testing.T) {
	var log programtest.Log
	require.Equal(t, program.ExitOK, greet(io.Discard, &log, "--logging-format=json", "--v=4"))
	assert.Equal(t, "DEBUG", log.Find("hidden", "level"))
}

func TestAFailureIsTheExitCode(t *testing.T) {
	var log programtest.Log
	require.Equal(t, program.ExitFailed, greet(io.Discard, &log, "--logging-format=json", "--whom=nobody"))
	assert.Equal(t, "nobody is there", log.Find("greet ends", "error"))
}
