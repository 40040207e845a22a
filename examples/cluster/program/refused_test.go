package program_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/client-go/rest"

	"github.com/pvbind/pvbind/examples/cluster/program"
	"github.com/pvbind/pvbind/examples/internal/programtest"
)

// Informers say nothing of it, so a program that is told a wrong address must.
func TestARefusedConnectionIsLoggedOnceInAWhile(t *testing.T) {
	var log programtest.Log
	common := program.Common{Master: "http://127.0.0.1:1", LogFormat: "json"}
	common.Logger(&log)
	config, err := common.Config("application/json")
	require.NoError(t, err)
	client, err := rest.HTTPClientFor(config)
	require.NoError(t, err)
	for range 3 {
		_, err := client.Get(common.Master + "/version")
		require.Error(t, err)
	}
	assert.Equal(t, "127.0.0.1:1", log.Find("The API server cannot be reached", "address"))
	assert.Contains(t, log.Find("The API server cannot be reached", "err"), "connection refused")
	assert.Equal(t, 1, strings.Count(log.String(), "cannot be reached"))
}
