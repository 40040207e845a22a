package program

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"strconv"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/klog/v2"
)

// Common has the flags of every program: how to reach the API server, and what to log. Names and defaults are those of
// Kubernetes' own programs where they have the same.
type Common struct {
	Kubeconfig string
	Master     string
	QPS        float64
	Burst      int
	LogFormat  string
	Verbosity  int
}

// Define defines the flags.
func (c *Common) Define(flags *flag.FlagSet) {
	flags.StringVar(&c.Kubeconfig, "kubeconfig", "", "the `file` that says how to connect; without it and --master, the service account of the pod is used")
	flags.StringVar(&c.Master, "master", "", "the `URL` of the API server, in place of the kubeconfig's")
	flags.Float64Var(&c.QPS, "kube-api-qps", -1, "requests per second to the API server; negative leaves the limit to the server's priority and fairness")
	flags.IntVar(&c.Burst, "kube-api-burst", 200, "requests that may be made at once, where --kube-api-qps is positive")
	flags.StringVar(&c.LogFormat, "logging-format", "text", "text or json")
	flags.IntVar(&c.Verbosity, "v", 0, "how much is logged, by the levels of Kubernetes")
}

// Check returns an error for values that cannot be.
func (c *Common) Check() error {
	switch {
	case c.QPS == 0:
		return errors.New("--kube-api-qps is 0")
	case c.QPS > 0 && c.Burst < 1:
		return fmt.Errorf("--kube-api-burst is %d, less than 1", c.Burst)
	case c.LogFormat != "text" && c.LogFormat != "json":
		return fmt.Errorf("--logging-format is neither text nor json: %q", c.LogFormat)
	case c.Verbosity < 0:
		return fmt.Errorf("--v is negative: %d", c.Verbosity)
	case c.Master != "":
		return c.checkMaster()
	}
	return nil
}

func (c *Common) checkMaster() error {
	url, _, err := rest.DefaultServerURL(c.Master, "", schema.GroupVersion{}, false)
	switch {
	case err != nil:
		return fmt.Errorf("--master: %w", err)
	case url.Scheme != "http" && url.Scheme != "https":
		return fmt.Errorf("--master is neither http nor https: %q", c.Master)
	}
	return nil
}

// Logger returns the logger of everything, client-go's messages included.
func (c *Common) Logger(out io.Writer) *slog.Logger {
	settings := &slog.HandlerOptions{Level: slog.Level(-c.Verbosity)}
	var handler slog.Handler = slog.NewTextHandler(out, settings)
	if c.LogFormat == "json" {
		handler = slog.NewJSONHandler(out, settings)
	}
	log := slog.New(handler)
	klog.SetSlogLogger(log)
	var level klog.Level
	_ = level.Set(strconv.Itoa(c.Verbosity)) // it takes every number
	return log
}

// Config returns how to reach the API server: as the flags say, or else as a pod does. Requests are sent in the content type.
func (c *Common) Config(contentType string) (*rest.Config, error) {
	config, err := c.reach()
	if err != nil {
		return nil, err
	}
	config.QPS, config.Burst = float32(c.QPS), c.Burst
	config.ContentType = contentType
	config.AcceptContentTypes = contentType + "," + runtime.ContentTypeJSON
	config.Wrap(new(refusedLog).wrap)
	return config, nil
}

func (c *Common) reach() (*rest.Config, error) {
	if c.Kubeconfig == "" && c.Master == "" {
		config, err := rest.InClusterConfig()
		if err != nil {
			return nil, fmt.Errorf("neither --kubeconfig nor --master is set, and this is no pod: %w", err)
		}
		return config, nil
	}
	config, err := clientcmd.BuildConfigFromFlags(c.Master, c.Kubeconfig)
	if err != nil {
		return nil, fmt.Errorf("--kubeconfig: %w", err)
	}
	return config, nil
}
