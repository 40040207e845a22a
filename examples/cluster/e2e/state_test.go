package e2e

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// state is a cluster in a few lines, which say what tests of binding ask for:
//
//	pv a Bound data      a volume, its phase, and whom it is for; data? if it has no UID, data! if it is an earlier claim's
//	pvc data Bound a     a claim of the default namespace, its phase, and the volume it names
//
// Objects that are being deleted have a cross in front of them: "†pvc data Bound a".
func (a api) state(ctx context.Context) (string, error) {
	volumes, err := a.CoreV1().PersistentVolumes().List(ctx, metav1.ListOptions{})
	if err != nil {
		return "", err
	}
	claims, err := a.CoreV1().PersistentVolumeClaims(metav1.NamespaceDefault).List(ctx, metav1.ListOptions{})
	if err != nil {
		return "", err
	}
	var lines []string
	for _, volume := range volumes.Items {
		lines = append(lines, cross(&volume)+strings.TrimSpace(fmt.Sprintf("pv %s %s %s", volume.Name, volume.Status.Phase, user(volume.Spec.ClaimRef, claims.Items))))
	}
	for _, claim := range claims.Items {
		lines = append(lines, cross(&claim)+strings.TrimSpace(fmt.Sprintf("pvc %s %s %s", claim.Name, claim.Status.Phase, claim.Spec.VolumeName)))
	}
	return strings.Join(lines, ", "), nil
}

func cross(object metav1.Object) string {
	if object.GetDeletionTimestamp() != nil {
		return "†"
	}
	return ""
}

func user(ref *corev1.ObjectReference, claims []corev1.PersistentVolumeClaim) string {
	if ref == nil {
		return ""
	}
	same := func(c corev1.PersistentVolumeClaim) bool { return c.Name == ref.Name && c.UID == ref.UID }
	switch {
	case ref.UID == "":
		return ref.Name + "?"
	case slices.ContainsFunc(claims, same):
		return ref.Name
	}
	return ref.Name + "!"
}

// settleWithin is how long a state may take to come about. It is long only where the machine is slow.
const settleWithin = time.Minute

// becomes waits until the cluster is in that state.
func (a api) becomes(t testing.TB, want string) {
	t.Helper()
	eventually(t, func(ctx context.Context) (string, error) {
		found, err := a.state(ctx)
		if err != nil || found == want {
			return "", err
		}
		return fmt.Sprintf("the cluster is not\n\t%s\nbut\n\t%s", want, found), nil
	})
}

// tells waits until there is an event of that reason about an object of that name.
func (a api) tells(t testing.TB, reason, name string) {
	t.Helper()
	eventually(t, func(ctx context.Context) (string, error) {
		events, err := a.CoreV1().Events(metav1.NamespaceDefault).List(ctx, metav1.ListOptions{})
		if err != nil {
			return "", err
		}
		var others []string
		for _, event := range events.Items {
			if event.InvolvedObject.Name == name && event.Reason == reason {
				return "", nil
			}
			others = append(others, event.InvolvedObject.Name+" "+event.Reason)
		}
		return fmt.Sprintf("no event %s about %s, but %s", reason, name, others), nil
	})
}

// eventually waits until nothing is amiss any more.
func eventually(t testing.TB, amiss func(context.Context) (string, error)) {
	t.Helper()
	ticker := time.NewTicker(10 * time.Millisecond)
	defer ticker.Stop()
	for deadline := time.Now().Add(settleWithin); ; <-ticker.C {
		what, err := amiss(t.Context())
		require.NoError(t, err)
		if what == "" {
			return
		}
		if time.Now().After(deadline) {
			require.FailNow(t, "this does not come about", what)
		}
	}
}

func (a api) claim(t testing.TB, name string) *corev1.PersistentVolumeClaim {
	t.Helper()
	found, err := a.CoreV1().PersistentVolumeClaims(metav1.NamespaceDefault).Get(t.Context(), name, metav1.GetOptions{})
	require.NoError(t, err)
	return found
}

// isBound says what is amiss as long as the claim is not Bound.
func (a api) isBound(name string) func(context.Context) (string, error) {
	return func(ctx context.Context) (string, error) {
		found, err := a.CoreV1().PersistentVolumeClaims(metav1.NamespaceDefault).Get(ctx, name, metav1.GetOptions{})
		if err != nil || found.Status.Phase == corev1.ClaimBound {
			return "", err
		}
		return fmt.Sprintf("claim %s is %s", name, found.Status.Phase), nil
	}
}
