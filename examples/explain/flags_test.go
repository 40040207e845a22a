package main

import (
	"os"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/pvbind/pvbind/binding/obj"
)

func TestParse(t *testing.T) {
	data := obj.ClaimKey("shop", "data")
	for name, c := range map[string]struct {
		args []string
		want options
	}{
		"nothing is standard input": {nil, options{format: formatText, files: []string{"-"}}},
		"files":                     {[]string{"a", "-", "b"}, options{format: formatText, files: []string{"a", "-", "b"}}},
		"flags between":             {[]string{"a", "-o", "json", "b"}, options{format: formatJSON, files: []string{"a", "b"}}},
		"files behind --":           {[]string{"-o=json", "--", "-claim"}, options{format: formatJSON, files: []string{"-claim"}}},
		"a claim":                   {[]string{"-claim", "shop/data", "a"}, options{format: formatText, claim: data, files: []string{"a"}}},
		"a claim of no namespace":   {[]string{"--claim=data"}, options{format: formatText, claim: obj.ClaimKey("default", "data"), files: []string{"-"}}},
		"a volume":                  {[]string{"a", "-volume", "x"}, options{format: formatText, volume: "x", files: []string{"a"}}},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := parse(c.args)
			require.NoError(t, err)
			assert.Equal(t, c.want, got)
		})
	}
}

func TestParseRefuses(t *testing.T) {
	for name, args := range map[string][]string{
		"an unknown flag":       {"-x"},
		"an unknown flag later": {"a", "-x"},
		"an unknown format":     {"-o", "table"},
		"an empty format":       {"-o", ""},
		"an empty claim":        {"-claim", ""},
		"no name":               {"-claim", "shop/"},
		"no namespace":          {"-claim", "/data"},
		"too much":              {"-claim", "pvc/shop/data"},
		"an empty volume":       {"-volume", ""},
		"a volume's namespace":  {"-volume", "shop/a"},
		"both":                  {"-volume", "a", "-claim", "b"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := parse(args)
			assert.Error(t, err)
		})
	}
}

// A character device stands for a terminal, as /dev/null is one too.
func TestSomebodyWhoForgotThePipeIsTold(t *testing.T) {
	device, err := os.Open(os.DevNull)
	require.NoError(t, err)
	defer device.Close()
	env := environment{program: "explain", stdin: device, now: time.Now}
	if !isTerminal(device) {
		return // not a device on this system
	}
	assert.ErrorContains(t, env.checkInput(options{files: []string{"-"}}), "nothing is piped into standard input")
	assert.NoError(t, env.checkInput(options{files: []string{"a"}}))
}
