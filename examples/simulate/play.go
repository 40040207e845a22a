package main

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/component-helpers/storage/ephemeral"

	"github.com/pvbind/pvbind/binding/bindingtest"
	"github.com/pvbind/pvbind/binding/decision"
	"github.com/pvbind/pvbind/binding/obj"
	"github.com/pvbind/pvbind/examples/internal/dump"
)

// simulation runs one operation after another on a cluster in memory.
type simulation struct {
	server *bindingtest.Server
	driver *bindingtest.Driver
	pods   scheduler
	notes  []string // on objects that no decision could be made on, a line each
}

// start returns a simulation that begins with the objects of a running cluster, after the controller has run until idle.
func start(ctx context.Context, running []obj.Object) (*simulation, error) {
	server := bindingtest.NewServer()
	if err := server.Load(running...); err != nil {
		return nil, err
	}
	options := bindingtest.DriverOptions{BindingOptions: decision.Options{Protection: decision.ProtectionOn}}
	s := &simulation{server: server, driver: bindingtest.NewDriver(server, options), pods: scheduler{client: server.NewClient("scheduler")}}
	return s, s.settle(ctx)
}

// play does all that the command line says, in the order that the usage promises.
func play(ctx context.Context, entries []dump.Entry, deletes []target) (*simulation, error) {
	running, first, then := order(entries)
	s, err := start(ctx, running)
	if err != nil {
		return nil, err
	}
	for _, e := range first {
		if err := s.create(ctx, e); err != nil {
			return nil, err
		}
	}
	if err := s.settle(ctx); err != nil {
		return nil, err
	}
	for _, e := range then {
		if err := errors.Join(s.create(ctx, e), s.settle(ctx)); err != nil {
			return nil, err
		}
	}
	if err := s.schedule(ctx); err != nil {
		return nil, err
	}
	for _, t := range deletes {
		if err := errors.Join(s.delete(ctx, t), s.schedule(ctx)); err != nil {
			return nil, err
		}
	}
	return s, nil
}

// order divides the input into what is loaded as it stands (it has a uid), what is created first
// (classes, nodes and volumes, in this order), and what is created after that has settled.
func order(entries []dump.Entry) (running []obj.Object, first, then []dump.Entry) {
	var classes, nodes, volumes []dump.Entry
	for _, e := range entries {
		if e.Object.GetUID() != "" {
			bindingtest.SetDefaults(e.Object)
			running = append(running, e.Object)
			continue
		}
		switch e.Object.(type) {
		case *storagev1.StorageClass:
			classes = append(classes, e)
		case *corev1.Node:
			nodes = append(nodes, e)
		case *corev1.PersistentVolume:
			volumes = append(volumes, e)
		default:
			then = append(then, e)
		}
	}
	return running, append(append(classes, nodes...), volumes...), then
}

// settle runs the controller until it is idle. An object that no decision can be made on gets a note, and does not
// hinder the others.
func (s *simulation) settle(ctx context.Context) error {
	for _, err := range dump.Unjoin(s.driver.Settle(ctx)) {
		var invalid *obj.InvalidError
		if !errors.As(err, &invalid) {
			return err
		}
		s.note(dump.OneLine(err.Error()))
	}
	return nil
}

// schedule places pods, and runs the controller, until nothing changes.
func (s *simulation) schedule(ctx context.Context) error {
	for {
		objects, err := s.objects(ctx)
		if err != nil {
			return err
		}
		wrote, err := s.makeClaims(ctx, objects)
		if err == nil && !wrote {
			wrote, err = s.pods.pass(ctx, objects)
		}
		if err != nil || !wrote {
			return err
		}
		if err := s.settle(ctx); err != nil {
			return err
		}
	}
}

func (s *simulation) note(line string) {
	if !slices.Contains(s.notes, line) {
		s.notes = append(s.notes, line)
	}
}

// create stores an object of the input. What the server rejects is a problem of the input.
func (s *simulation) create(ctx context.Context, e dump.Entry) error {
	_, err := s.server.Create(ctx, e.Object)
	if status := apierrors.APIStatus(nil); errors.As(err, &status) {
		return &dump.Problem{Place: e.Place, Object: e.Name, Text: err.Error()}
	}
	return err
}

// delete deletes an object, and runs the controller until it is idle. A pod that has time to end ends after that, and what
// it owned goes with it.
func (s *simulation) delete(ctx context.Context, t target) error {
	err := s.server.Delete(ctx, t.key(), metav1.DeleteOptions{})
	if apierrors.IsNotFound(err) {
		return &dump.UsageError{Err: fmt.Errorf("-delete %s: there is no such object then", t)}
	}
	if err := errors.Join(err, s.settle(ctx)); err != nil {
		return err
	}
	if t.kind == "pod" {
		err := s.server.NewClient("kubelet").FinishPod(ctx, t.namespace, t.name)
		if err != nil && !apierrors.IsNotFound(err) { // it may have gone at once
			return err
		}
	}
	return s.collect(ctx)
}

// makeClaims creates the claims of generic ephemeral volumes that are missing, as kube-controller-manager does, for the
// pods that are to be placed. A pod whose claim the server rejects waits for it.
func (s *simulation) makeClaims(ctx context.Context, objects []obj.Object) (made bool, err error) {
	client := s.server.NewClient("ephemeral-volume-controller")
	pods, _ := podsAndNodes(objects)
	for _, pod := range pods {
		for i := range pod.Spec.Volumes {
			claim := claimOfVolume(pod, &pod.Spec.Volumes[i])
			if claim == nil || s.server.Claim(claim.Namespace, claim.Name) != nil {
				continue
			}
			_, err := client.Create(ctx, claim)
			if status := apierrors.APIStatus(nil); errors.As(err, &status) {
				s.note(fmt.Sprintf("%s: its ephemeral volume %s: %v", podKey(pod), pod.Spec.Volumes[i].Name, err))
			} else if err != nil {
				return made, err
			}
			made = made || err == nil
		}
	}
	return made, nil
}

// claimOfVolume returns the claim to create for a volume of the pod; nil if it is not ephemeral, or says nothing of a claim.
func claimOfVolume(pod *corev1.Pod, volume *corev1.Volume) *corev1.PersistentVolumeClaim {
	if volume.Ephemeral == nil || volume.Ephemeral.VolumeClaimTemplate == nil {
		return nil
	}
	template := volume.Ephemeral.VolumeClaimTemplate
	return &corev1.PersistentVolumeClaim{
		ObjectMeta: metav1.ObjectMeta{
			Namespace:       pod.Namespace,
			Name:            ephemeral.VolumeClaimName(pod, volume),
			Labels:          maps.Clone(template.Labels),
			Annotations:     maps.Clone(template.Annotations),
			OwnerReferences: []metav1.OwnerReference{*metav1.NewControllerRef(pod, corev1.SchemeGroupVersion.WithKind("Pod"))},
		},
		Spec: *template.Spec.DeepCopy(),
	}
}

// collect deletes what is left without owners, and runs the controller, until nothing is left so.
func (s *simulation) collect(ctx context.Context) error {
	for {
		if err := s.settle(ctx); err != nil {
			return err
		}
		if collected, err := s.server.CollectGarbage(ctx); err != nil || len(collected) == 0 {
			return err
		}
	}
}
