// Command scheduler is kube-scheduler with the plugin PVBind compiled in. What it does is the profile's to say: see README.md.
package main

import (
	"os"

	"k8s.io/component-base/cli"
	"k8s.io/kubernetes/cmd/kube-scheduler/app"

	"github.com/pvbind/pvbind/binding/schedulerplugin"
)

func main() {
	os.Exit(cli.Run(app.NewSchedulerCommand(app.WithPlugin(schedulerplugin.Name, schedulerplugin.New))))
}
