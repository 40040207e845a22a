package schedulerplugin

import (
	"context"
	"fmt"
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/klog/v2"
	"k8s.io/kube-scheduler/framework"

	"github.com/pvbind/pvbind/binding/scheduling"
	"github.com/pvbind/pvbind/phase"
	"github.com/pvbind/pvbind/reclaim"
	"github.com/pvbind/pvbind/storageclass"
)

// EventsToRegister returns what may help a pod that was rejected. The hint of each looks at the claims of the pod as they are by
// then. A claim that is not known yet has an event of its own to come.
func (p *Plugin) EventsToRegister(context.Context) ([]framework.ClusterEventWithHint, error) {
	on := func(resource framework.EventResource, actions framework.ActionType, hint framework.QueueingHintFn) framework.ClusterEventWithHint {
		return framework.ClusterEventWithHint{Event: framework.ClusterEvent{Resource: resource, ActionType: actions}, QueueingHintFn: hint}
	}
	const addOrUpdate = framework.Add | framework.Update
	return []framework.ClusterEventWithHint{
		on(framework.PersistentVolumeClaim, addOrUpdate|framework.Delete, hint(p.claimHelps)),
		on(framework.PersistentVolume, addOrUpdate, hint(p.volumeHelps)),
		// A taint makes no difference, but is what tells of a new node where the feature gate SchedulerQueueingHints is off.
		on(framework.Node, framework.Add|framework.UpdateNodeLabel|framework.UpdateNodeTaint, hint(nodeHelps)),
		on(framework.StorageClass, addOrUpdate, hint(p.classHelps)),
		on(framework.CSINode, addOrUpdate|framework.Delete, hint(csiNodeHelps)),
		on(framework.CSIDriver, framework.Update|framework.Delete, hint(p.driverHelps)),
		on(framework.CSIStorageCapacity, addOrUpdate, hint(p.capacityHelps)),
		// What was assumed for a pod is free again when the pod is deleted, or could not be bound.
		on(framework.Pod, framework.Delete, hint(p.podHelps)),
	}, nil
}

// hint returns the hint for objects of one kind. Before is nil for one that is new, and now for one that is gone.
func hint[T any](helps func(pod *corev1.Pod, before, now *T) bool) framework.QueueingHintFn {
	return func(_ klog.Logger, pod *corev1.Pod, before, now any) (framework.QueueingHint, error) {
		was, wasOne := before.(*T)
		is, isOne := now.(*T)
		if before != nil && !wasOne || now != nil && !isOne || was == nil && is == nil {
			return framework.Queue, fmt.Errorf("want two %T, got %T and %T", was, before, now)
		}
		if helps(pod, was, is) {
			return framework.Queue, nil
		}
		return framework.QueueSkip, nil
	}
}

// claimHelps reports whether a claim is the pod's, or was deleted and had a volume, which may not have known of it.
func (p *Plugin) claimHelps(pod *corev1.Pod, before, now *corev1.PersistentVolumeClaim) bool {
	if now == nil {
		return before.Spec.VolumeName != "" && len(p.unbound(pod)) > 0
	}
	return isNamed(pod, now.Namespace, now.Name)
}

// volumeHelps reports whether a volume is one that the pod's claims may be given or have, or does not stand in their way any more.
func (p *Plugin) volumeHelps(pod *corev1.Pod, before, now *corev1.PersistentVolume) bool {
	refersToPod := func(volume *corev1.PersistentVolume) bool {
		return volume != nil && volume.Spec.ClaimRef != nil && isNamed(pod, volume.Spec.ClaimRef.Namespace, volume.Spec.ClaimRef.Name)
	}
	if refersToPod(before) || refersToPod(now) {
		return true
	}
	free := now.Spec.ClaimRef == nil
	return slices.ContainsFunc(p.claimsOf(pod), func(claim *corev1.PersistentVolumeClaim) bool {
		return claim.Spec.VolumeName == now.Name || free && storageclass.OfClaim(claim) == storageclass.OfVolume(now) && !isBound(claim)
	})
}

func nodeHelps(_ *corev1.Pod, before, now *corev1.Node) bool {
	return before == nil || now == nil || !maps.Equal(before.Labels, now.Labels)
}

// classHelps reports whether a class of the pod's claims has come, or allows other nodes than it did.
func (p *Plugin) classHelps(pod *corev1.Pod, before, now *storagev1.StorageClass) bool {
	changed := before == nil || !equality.Semantic.DeepEqual(before.AllowedTopologies, now.AllowedTopologies)
	return changed && len(p.unboundOf(pod, now.Name)) > 0
}

// csiNodeHelps reports whether other plugins are migrated on a node than were, so that other labels of it count.
func csiNodeHelps(_ *corev1.Pod, before, now *storagev1.CSINode) bool {
	migrated := func(node *storagev1.CSINode) string {
		if node == nil {
			return ""
		}
		return node.Annotations[corev1.MigratedPluginsAnnotationKey]
	}
	return migrated(before) != migrated(now)
}

// driverHelps reports whether a driver of the pod's claims does not publish its capacities any more: then it is not asked for room.
func (p *Plugin) driverHelps(pod *corev1.Pod, before, now *storagev1.CSIDriver) bool {
	publishes := func(driver *storagev1.CSIDriver) bool {
		return driver != nil && driver.Spec.StorageCapacity != nil && *driver.Spec.StorageCapacity
	}
	if !publishes(before) || publishes(now) {
		return false
	}
	return slices.ContainsFunc(p.unbound(pod), func(claim *corev1.PersistentVolumeClaim) bool {
		class := p.volumes.Class(storageclass.OfClaim(claim))
		return class != nil && class.Provisioner == before.Name
	})
}

// capacityHelps reports whether a claim of the pod has room now, and had none before.
func (p *Plugin) capacityHelps(pod *corev1.Pod, before, now *storagev1.CSIStorageCapacity) bool {
	return slices.ContainsFunc(p.unboundOf(pod, now.StorageClassName), func(claim *corev1.PersistentVolumeClaim) bool {
		size := claim.Spec.Resources.Requests[corev1.ResourceStorage]
		return scheduling.HasRoom(now, size) && (before == nil || !scheduling.HasRoom(before, size))
	})
}

// podHelps reports whether a pod that is gone may have had volumes assumed for it that the other needs.
func (p *Plugin) podHelps(pod *corev1.Pod, before, _ *corev1.Pod) bool {
	return before != nil && namesClaims(before) && len(p.unbound(pod)) > 0
}

func isNamed(pod *corev1.Pod, namespace, claim string) bool {
	return pod.Namespace == namespace && slices.ContainsFunc(pod.Spec.Volumes, func(source corev1.Volume) bool {
		return reclaim.ClaimName(pod, &source) == claim
	})
}

// claimsOf returns the claims of the pod that exist. They are those that the informer has stored, which is no older than any event.
func (p *Plugin) claimsOf(pod *corev1.Pod) (claims []*corev1.PersistentVolumeClaim) {
	for i := range pod.Spec.Volumes {
		name := reclaim.ClaimName(pod, &pod.Spec.Volumes[i])
		if name == "" {
			continue
		}
		if claim, err := p.claims.PersistentVolumeClaims(pod.Namespace).Get(name); err == nil {
			claims = append(claims, claim)
		}
	}
	return claims
}

func (p *Plugin) unbound(pod *corev1.Pod) []*corev1.PersistentVolumeClaim {
	return slices.DeleteFunc(p.claimsOf(pod), isBound)
}

// unboundOf returns the unbound claims of a class.
func (p *Plugin) unboundOf(pod *corev1.Pod, class string) []*corev1.PersistentVolumeClaim {
	return slices.DeleteFunc(p.unbound(pod), func(claim *corev1.PersistentVolumeClaim) bool { return storageclass.OfClaim(claim) != class })
}

func isBound(claim *corev1.PersistentVolumeClaim) bool {
	return claim.Spec.VolumeName != "" && phase.BindCompleted(claim)
}
