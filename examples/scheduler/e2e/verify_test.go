package e2e

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/pvbind/pvbind/storageclass"
)

// state is what is stored of a world.
type state struct {
	pods    []corev1.Pod
	claims  map[string]*corev1.PersistentVolumeClaim
	volumes map[string]*corev1.PersistentVolume
}

func (w *world) state() state {
	w.Helper()
	ctx, options := context.Background(), metav1.ListOptions{ResourceVersion: ""}
	pods, err := w.Client.CoreV1().Pods(w.Namespace).List(ctx, options)
	require.NoError(w, err)
	claims, err := w.Client.CoreV1().PersistentVolumeClaims(w.Namespace).List(ctx, options)
	require.NoError(w, err)
	volumes, err := w.Client.CoreV1().PersistentVolumes().List(ctx, options)
	require.NoError(w, err)
	s := state{pods.Items, map[string]*corev1.PersistentVolumeClaim{}, map[string]*corev1.PersistentVolume{}}
	for i := range claims.Items {
		s.claims[claims.Items[i].Name] = &claims.Items[i]
	}
	for i := range volumes.Items {
		if volume := &volumes.Items[i]; strings.HasPrefix(volume.Spec.StorageClassName, w.Namespace+"-") {
			s.volumes[volume.Name] = volume
		}
	}
	return s
}

// pending returns the pods that have no node.
func (s state) pending() (names []string) {
	for _, pod := range s.pods {
		if pod.Spec.NodeName == "" {
			names = append(names, pod.Name)
		}
	}
	return names
}

// settled reports whether every claim that has a volume is Bound, so that the binder has nothing left to do.
func (s state) settled() bool {
	for _, claim := range s.claims {
		if claim.Spec.VolumeName != "" && claim.Status.Phase != corev1.ClaimBound {
			return false
		}
	}
	return true
}

// crimes returns what must not be, whatever has failed: a pod on a node where it cannot use its volumes, a volume that two
// claims have, a volume kept for a claim that has another, a claim without a volume, or with one, whose selected-node is not its pod's.
func (s state) crimes() (crimes []string) {
	found := func(format string, args ...any) { crimes = append(crimes, fmt.Sprintf(format, args...)) }
	owners := map[string]string{}
	nodes := map[string]string{} // of claims
	for _, pod := range s.pods {
		for i := range pod.Spec.Volumes {
			source := pod.Spec.Volumes[i].PersistentVolumeClaim
			if source == nil {
				continue
			}
			nodes[source.ClaimName] = pod.Spec.NodeName
			if pod.Spec.NodeName == "" {
				continue
			}
			claim := s.claims[source.ClaimName]
			volume := s.volumes[claim.Spec.VolumeName]
			switch {
			case volume == nil:
				found("pod %s runs, and its claim %s has no volume", pod.Name, claim.Name)
			case claim.Status.Phase != corev1.ClaimBound:
				found("pod %s runs, and its claim %s is %s", pod.Name, claim.Name, claim.Status.Phase)
			case nodeOf(volume) != pod.Spec.NodeName:
				found("pod %s runs on %s, and volume %s is on %s", pod.Name, pod.Spec.NodeName, volume.Name, nodeOf(volume))
			}
		}
	}
	for _, name := range slices.Sorted(maps.Keys(s.claims)) {
		claim := s.claims[name]
		if selected := claim.Annotations[storageclass.SelectedNodeAnnotation]; selected != "" && selected != nodes[name] {
			found("claim %s has %s selected, and its pod is on %q", name, selected, nodes[name])
		}
		if claim.Spec.VolumeName == "" {
			continue
		}
		if other, has := owners[claim.Spec.VolumeName]; has {
			found("claims %s and %s both have volume %s", name, other, claim.Spec.VolumeName)
		}
		owners[claim.Spec.VolumeName] = name
	}
	for _, name := range slices.Sorted(maps.Keys(s.volumes)) {
		volume := s.volumes[name]
		if ref := volume.Spec.ClaimRef; ref != nil && owners[name] != ref.Name {
			found("volume %s is kept for claim %s, which has %q", name, ref.Name, s.claims[ref.Name].Spec.VolumeName)
		}
	}
	return crimes
}

// nodeOf returns the node that a volume is on.
func nodeOf(volume *corev1.PersistentVolume) string {
	return volume.Spec.NodeAffinity.Required.NodeSelectorTerms[0].MatchExpressions[0].Values[0]
}
