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

	"github.com/pvbind/pvbind/binding"
	"github.com/pvbind/pvbind/binding/bindingtest"
	"github.com/pvbind/pvbind/binding/obj"
	"github.com/pvbind/pvbind/examples/internal/dump"
)

var patchOf = regexp.MustCompile(`^kubectl patch pv (\S+) --type=merge -p '(.*)'$`)

// kubectl does what a command says to the cluster.
func kubectl(t *testing.T, cluster *bindingtest.Cluster, command string) error {
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
func settled(t *testing.T) (*bindingtest.Cluster, report) {
	in, err := dump.Read([]string{cluster}, nil, nil)
	require.NoError(t, err)
	objects := in.Objects()
	running := bindingtest.NewCluster(objects...)
	return running, newWorld(objects, newProgress(nil, time.Now)).report()
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
		report, err := binding.CheckPair(binding.PairRequest{Claim: claim, Volume: volume, View: binding.Snapshot{
			Claims: []*corev1.PersistentVolumeClaim{claim}, Volumes: []*corev1.PersistentVolume{volume}}})
		require.NoError(t, err)
		assert.True(t, report.Healthy(), "%v", report.Violations)
	})
	t.Run("the opening of a volume", func(t *testing.T) {
		running, said := settled(t)
		for _, volume := range said.Volumes {
			for _, choice := range volume.Can {
				if volume.Volume == obj.VolumeKey("old-1") && choice.Verb == "Open" {
					require.NoError(t, kubectl(t, running, choice.Command))
				}
			}
		}
		require.NoError(t, ignoringInvalid(running.Settle(context.Background())))
		assert.Equal(t, "old-1", running.Claim("shop", "data-0").Spec.VolumeName, "it was waiting for such a volume")
	})
	t.Run("the keeping of a volume", func(t *testing.T) {
		running, said := settled(t)
		for _, volume := range said.Volumes {
			for _, choice := range volume.Can {
				if choice.Verb == "Retain" {
					require.NoError(t, kubectl(t, running, choice.Command))
				}
			}
		}
		for _, name := range []string{"deleted", "failed"} {
			assert.Equal(t, corev1.PersistentVolumeReclaimRetain, running.Volume(name).Spec.PersistentVolumeReclaimPolicy)
		}
	})
}

// ignoringInvalid passes over what only a person can mend (X7).
func ignoringInvalid(err error) error {
	for _, one := range dump.Unjoin(err) {
		if _, invalid := one.(*obj.InvalidError); !invalid {
			return one
		}
	}
	return nil
}
