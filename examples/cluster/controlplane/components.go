package controlplane

import "strings"

// Run starts a program that prints into the plane's directory under that name. It is the caller's to stop.
func (p *Plane) Run(name, program string, args ...string) (*Process, error) {
	return launch(p.dir, nil, name, program, args...)
}

// The controllers of kube-controller-manager that do what this library does.
const (
	Binder           = "persistentvolume-binder-controller"
	ClaimProtection  = "persistentvolumeclaim-protection-controller"
	VolumeProtection = "persistentvolume-protection-controller"
)

// ControllerManager starts kube-controller-manager with these controllers alone, without leader election and
// without limits of its client, and with more flags. It is the caller's to stop.
func (p *Plane) ControllerManager(controllers []string, flags ...string) (*Process, error) {
	kubeconfig, err := p.Kubeconfig("kube-controller-manager", adminToken)
	if err != nil {
		return nil, err
	}
	flags = append([]string{
		"--kubeconfig", kubeconfig,
		"--controllers", strings.Join(controllers, ","),
		"--leader-elect=false",
		"--secure-port=0",
		"--kube-api-qps=1e6",
		"--kube-api-burst=1000000",
	}, flags...)
	return p.Run("kube-controller-manager", p.binary("kube-controller-manager"), flags...)
}

// Scheduler starts kube-scheduler without leader election. It is the caller's to stop.
func (p *Plane) Scheduler() (*Process, error) {
	kubeconfig, err := p.Kubeconfig("kube-scheduler", adminToken)
	if err != nil {
		return nil, err
	}
	const config = "kube-scheduler.yaml"
	text := "apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\n" +
		"clientConnection: {kubeconfig: " + kubeconfig + ", qps: 1e6, burst: 1000000}\n" +
		"leaderElection: {leaderElect: false}\n"
	if err := p.write(config, []byte(text)); err != nil {
		return nil, err
	}
	return p.Run("kube-scheduler", p.binary("kube-scheduler"), "--config", p.path(config), "--secure-port=0")
}
