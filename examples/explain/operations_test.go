package main

import (
	"context"
	"encoding/json"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/pvbind/pvbind/binding/bindingtest"
	"github.com/pvbind/pvbind/binding/decision"
	"github.com/pvbind/pvbind/binding/obj"
	"github.com/pvbind/pvbind/examples/internal/dump"
	"github.com/pvbind/pvbind/reclaim"
)

var patchOf = regexp.MustCompile(`^kubectl patch pv (\S+) --type=merge -p '(.*)'$`)

// running is a server with a controller on it.
type running struct {
	*bindingtest.Server
	*bindingtest.Driver
}

// kubectl does what a command says to the cluster.
func kubectl(t *testing.T, cluster running, command string) error {
	t.Helper()
	found := patchOf.FindStringSubmatch(command)
	require.Len(t, found, 3, command)
	var patch map[string]any
	require.NoError(t, json.Unmarshal([]byte(strings.ReplaceAll(found[2], `'\''`, "'")), &patch))
	text, err := json.Marshal(merged(fieldsOf(cluster.Volume(found[1])), patch))
	require.NoError(t, err)
	var volume corev1.PersistentVolume
	require.NoError(t, json.Unmarshal(text, &volume))
	_, err = cluster.Update(context.Background(), &volume)
	return err
}

// settled is the cluster of the test data with a controller on it, and what is said of it before that has done
// anything.
func settled(t *testing.T) (running, report) {
	in, err := dump.Read([]string{clusterFile}, nil, nil)
	require.NoError(t, err)
	objects := in.Objects()
	server := bindingtest.NewServer(objects...)
	return running{server, bindingtest.NewDriver(server, bindingtest.DriverOptions{})}, newCluster(objects, newProgress(nil, time.Now)).report()
}

// Every command, given at once or after the controller has done its part, does what was said of it, and is refused if
// the object has changed meanwhile (B5).
func TestTheCommandsDoWhatTheySay(t *testing.T) {
	t.Run("the repair of a pair", func(t *testing.T) {
		running, said := settled(t)
		repaired := 0
		for _, pair := range said.Pairs {
			if pair.Command != "" {
				require.NoError(t, kubectl(t, running, pair.Command))
				assert.True(t, apierrors.IsConflict(kubectl(t, running, pair.Command)), "not twice")
				repaired++
			}
		}
		assert.Equal(t, 1, repaired)
		require.NoError(t, ignoringInvalid(running.Settle(context.Background())))
		claim, volume := running.Claim("web", "restored"), running.Volume("restored")
		assert.Equal(t, corev1.ClaimBound, claim.Status.Phase)
		assert.Equal(t, corev1.VolumeBound, volume.Status.Phase)
		report, err := decision.CheckPair(decision.PairRequest{Claim: claim, Volume: volume, View: decision.Snapshot{
			Claims: []*corev1.PersistentVolumeClaim{claim}, Volumes: []*corev1.PersistentVolume{volume}}})
		require.NoError(t, err)
		assert.True(t, report.Healthy(), "%v", report.Violations)
	})
	t.Run("a volume made Available", func(t *testing.T) {
		running, said := settled(t)
		for _, volume := range said.Volumes {
			for _, operation := range volume.Operations {
				if volume.Volume == obj.VolumeKey("old-1") && operation.Name == makeAvailable {
					require.NoError(t, kubectl(t, running, operation.Command))
				}
			}
		}
		require.NoError(t, ignoringInvalid(running.Settle(context.Background())))
		assert.Equal(t, "old-1", running.Claim("shop", "data-0").Spec.VolumeName, "it was waiting for such a volume")
	})
	t.Run("a policy set to Retain", func(t *testing.T) {
		running, said := settled(t)
		for _, volume := range said.Volumes {
			for _, operation := range volume.Operations {
				if operation.Name == setToRetain {
					require.NoError(t, kubectl(t, running, operation.Command))
				}
			}
		}
		for _, name := range []string{"deleted", "failed"} {
			assert.Equal(t, corev1.PersistentVolumeReclaimRetain, running.Volume(name).Spec.PersistentVolumeReclaimPolicy)
		}
	})
}

// ignoringInvalid passes over what only a person can repair (X7).
func ignoringInvalid(err error) error {
	for _, one := range dump.Unjoin(err) {
		if _, invalid := one.(*obj.InvalidError); !invalid {
			return one
		}
	}
	return nil
}

// merged applies a merge patch as RFC 7386 says.
func merged(target, patch map[string]any) map[string]any {
	for key, value := range patch {
		switch value := value.(type) {
		case nil:
			delete(target, key)
		case map[string]any:
			inner, _ := target[key].(map[string]any)
			if inner == nil {
				inner = map[string]any{}
			}
			target[key] = merged(inner, value)
		default:
			target[key] = value
		}
	}
	return target
}

var inQuotes = regexp.MustCompile(`(?s)^kubectl patch pv disk --type=merge -p '(.*)'$`)

func TestPatchMakesTheOneOfTheOther(t *testing.T) {
	before := bindingtest.Volume("disk", "1Gi")
	before.ResourceVersion = "7"
	before.Annotations = map[string]string{"pv.kubernetes.io/bound-by-controller": "yes", "keep": "me"}
	before.Spec.ClaimRef = &corev1.ObjectReference{Namespace: "shop", Name: "data", UID: "old", ResourceVersion: "3"}
	for name, change := range map[string]func(*corev1.PersistentVolume){
		"another UID": func(v *corev1.PersistentVolume) { v.Spec.ClaimRef.UID, v.Spec.ClaimRef.ResourceVersion = "new", "" },
		"no claimRef": func(v *corev1.PersistentVolume) {
			v.Spec.ClaimRef, v.Annotations = nil, map[string]string{"keep": "me"}
		},
		"a list":             func(v *corev1.PersistentVolume) { v.Finalizers = []string{"a", "b"} },
		"a quote":            func(v *corev1.PersistentVolume) { v.Annotations["it's"] = `a "quote"` },
		"nothing":            func(*corev1.PersistentVolume) {},
		"what was not there": func(v *corev1.PersistentVolume) { v.Labels = map[string]string{"tier": "gold"} },
	} {
		t.Run(name, func(t *testing.T) {
			after := before.DeepCopy()
			change(after)
			found := inQuotes.FindStringSubmatch(patchCommand(before, after))
			require.Len(t, found, 2)
			var patch map[string]any
			require.NoError(t, json.Unmarshal([]byte(regexp.MustCompile(`'\\''`).ReplaceAllString(found[1], "'")), &patch))
			assert.Equal(t, "7", patch["metadata"].(map[string]any)["resourceVersion"], "B5: it fails if somebody was faster")
			assert.Equal(t, fieldsOf(after), merged(fieldsOf(before), patch))
		})
	}
}

// R8: a volume whose storage another controller has announced to reclaim waits for that.
func TestAReclaimThatWaitsForAnother(t *testing.T) {
	volume := bindingtest.Volume("old", "1Gi")
	volume.Spec.PersistentVolumeReclaimPolicy, volume.Status.Phase = corev1.PersistentVolumeReclaimDelete, corev1.VolumeReleased
	volume.Spec.ClaimRef = &corev1.ObjectReference{Namespace: "shop", Name: "gone", UID: "uid-1"}
	reclaim.Announce(volume, reclaim.Announcement{By: "pvbinder-0", Token: 1, Seconds: 60})
	groups := newCluster([]obj.Object{volume}, newProgress(nil, time.Now)).report().Volumes
	require.Len(t, groups, 1)
	assert.Contains(t, groups[0].Why, `controller "pvbinder-0" has announced that it reclaims the storage, and may be at work until about 1970-01-01T00:01:00Z`)
}

// R7: what a slip in claimRef hides, or a claimRef that is missing, is not given away: neither the data of the claim that names the volume, nor
// what its pods use.
func TestAVolumeThatAClaimNamesIsNotGivenAway(t *testing.T) {
	for name, test := range map[string]struct {
		ref  *corev1.ObjectReference
		at   corev1.PersistentVolumeClaimPhase
		want string
	}{
		"a slip in the name":      {&corev1.ObjectReference{Namespace: "shop", Name: "slip", UID: "uid-1"}, corev1.ClaimLost, "ClaimLives"},
		"a slip in the namespace": {&corev1.ObjectReference{Namespace: "ship", Name: "data", UID: "uid-1"}, corev1.ClaimLost, "ClaimLives"},
		"under a Bound claim":     {&corev1.ObjectReference{Namespace: "shop", Name: "slip", UID: "uid-1"}, corev1.ClaimBound, "ClaimLives"},
		"no claimRef":             {nil, corev1.ClaimPending, "InUse"},
	} {
		t.Run(name, func(t *testing.T) {
			volume := bindingtest.Volume("disk", "1Gi")
			volume.Spec.PersistentVolumeReclaimPolicy, volume.Status.Phase, volume.Spec.ClaimRef = corev1.PersistentVolumeReclaimRetain, corev1.VolumeReleased, test.ref
			claim := bindingtest.Claim("shop", "data", "1Gi")
			claim.UID, claim.Spec.VolumeName, claim.Status.Phase = "uid-1", "disk", test.at
			pod := bindingtest.Pod("shop", "web", "node", "data")
			groups := newCluster([]obj.Object{volume, claim, pod}, newProgress(nil, time.Now)).report().Volumes
			require.Len(t, groups, 1)
			require.Len(t, groups[0].Operations, 1)
			available := groups[0].Operations[0]
			assert.Equal(t, makeAvailable, available.Name)
			assert.Empty(t, available.Command)
			refused := strings.Join(available.Refused, "; ")
			assert.Contains(t, refused, test.want)
			assert.Equal(t, 1, strings.Count(refused, "shop/web"), refused)
			if test.ref != nil {
				assert.Contains(t, groups[0].Why, "pvc/shop/data requests it by name")
			}
		})
	}
}
