package scheduling_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"

	. "github.com/pvbind/pvbind/binding/internal/testkit"
	"github.com/pvbind/pvbind/binding/obj"
	"github.com/pvbind/pvbind/binding/scheduling"
)

// using is a pod whose container takes its volume by this or that name, mounted or as a device.
func using(mounts, devices string, kind string) *corev1.Pod {
	pod := podWith("data")
	var c corev1.Container
	for _, name := range strings.Fields(mounts) {
		c.VolumeMounts = append(c.VolumeMounts, corev1.VolumeMount{Name: name})
	}
	for _, name := range strings.Fields(devices) {
		c.VolumeDevices = append(c.VolumeDevices, corev1.VolumeDevice{Name: name})
	}
	switch kind {
	case "init":
		pod.Spec.InitContainers = []corev1.Container{c}
	case "ephemeral":
		pod.Spec.EphemeralContainers = []corev1.EphemeralContainer{{EphemeralContainerCommon: corev1.EphemeralContainerCommon(c)}}
	default:
		pod.Spec.Containers = []corev1.Container{{}, c}
	}
	return pod
}

func TestVolumesOf(t *testing.T) {
	held, block := RefersTo("default", "data", "uid-of-data"), func(v *corev1.PersistentVolume) { v.Spec.VolumeMode = new(corev1.PersistentVolumeBlock) }
	bound, volume := claimNamed("data", BoundTo("pv-a")), storedVolume("pv-a", held)
	scratch := podWithScratch()
	mine := claimNamed("web-scratch", BoundTo("pv-a"), ownedByPod(scratch))
	pod := podWith("data")
	for name, c := range map[string]struct {
		planning
		want scheduling.Cause
	}{
		"ready":                                {planning{pod, []obj.Object{bound, volume}}, ""},
		"the claim does not exist":             {planning{pod, []obj.Object{volume}}, scheduling.CauseClaimAbsent},
		"the claim is Pending":                 {planning{pod, []obj.Object{claimNamed("data", BoundTo("pv-a"), ClaimPhase(corev1.ClaimPending)), volume}}, scheduling.CauseClaimUnbound},
		"the claim is Lost":                    {planning{pod, []obj.Object{claimNamed("data", BoundTo("pv-a"), ClaimPhase(corev1.ClaimLost)), volume}}, scheduling.CauseClaimLost},
		"the claim names none":                 {planning{pod, []obj.Object{claimNamed("data", ClaimPhase(corev1.ClaimBound)), volume}}, scheduling.CauseClaimUnbound},
		"the claim is being deleted":           {planning{pod, []obj.Object{claimNamed("data", BoundTo("pv-a"), ClaimBeingDeleted), volume}}, scheduling.CauseClaimDeleting},
		"F1 … but is protected":                {planning{pod, []obj.Object{claimNamed("data", BoundTo("pv-a"), ClaimBeingDeleted, ClaimFinalizers(ClaimProtection)), volume}}, ""},
		"the volume does not exist":            {planning{pod, []obj.Object{bound}}, scheduling.CauseVolumeAbsent},
		"L1 the volume is free":                {planning{pod, []obj.Object{bound, storedVolume("pv-a")}}, scheduling.CauseVolumeTaken},
		"L2 the volume names no UID":           {planning{pod, []obj.Object{bound, storedVolume("pv-a", RefersTo("default", "data", ""))}}, scheduling.CauseVolumeTaken},
		"L4 the volume is of an earlier claim": {planning{pod, []obj.Object{bound, storedVolume("pv-a", RefersTo("default", "data", "uid-0"))}}, scheduling.CauseVolumeTaken},
		"S1 ephemeral":                         {planning{scratch, []obj.Object{mine, storedVolume("pv-a", RefersTo("default", "web-scratch", "uid-of-web-scratch"))}}, ""},
		"S1 ephemeral, not the pod's":          {planning{scratch, []obj.Object{claimNamed("web-scratch", BoundTo("pv-a")), volume}}, scheduling.CauseClaimNotOwned},
		"M5 mounted":                           {planning{using("vol-data", "", ""), []obj.Object{bound, volume}}, ""},
		"M5 mounted, but a device":             {planning{using("vol-data", "", ""), []obj.Object{bound, storedVolume("pv-a", held, block)}}, scheduling.CauseVolumeMode},
		"M5 mounted at the start":              {planning{using("vol-data", "", "init"), []obj.Object{bound, storedVolume("pv-a", held, block)}}, scheduling.CauseVolumeMode},
		"M5 mounted for debugging":             {planning{using("vol-data", "", "ephemeral"), []obj.Object{bound, storedVolume("pv-a", held, block)}}, scheduling.CauseVolumeMode},
		"M5 a device":                          {planning{using("", "vol-data", ""), []obj.Object{bound, storedVolume("pv-a", held, block)}}, ""},
		"M5 a device, but a file system":       {planning{using("", "vol-data", ""), []obj.Object{bound, volume}}, scheduling.CauseVolumeMode},
		"M5 another volume's":                  {planning{using("other", "other", ""), []obj.Object{bound, volume}}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			volumes := scheduling.VolumesOf(c.pod, c.view())
			require.Len(t, volumes, 1)
			v := volumes[0]
			assert.Equal(t, c.want, v.Wait.Cause)
			assert.Equal(t, c.want == "", v.Ready())
			if v.Ready() {
				assert.Equal(t, "pv-a", v.Volume.Name)
				assert.Equal(t, v.Claim.Spec.VolumeName, v.Volume.Name)
				assert.Zero(t, v.Wait)
				return
			}
			assert.Equal(t, obj.ClaimKey("default", v.Wait.Claim.Name), v.Wait.Claim)
			assert.NotEmpty(t, v.Wait.Detail)
		})
	}
}

func TestVolumesOfInOrder(t *testing.T) {
	pod := podWith("b", "a", "b")
	pod.Spec.Volumes[1].PersistentVolumeClaim.ReadOnly = true
	pod.Spec.Volumes = append(pod.Spec.Volumes, corev1.Volume{Name: "config"})
	block := func(v *corev1.PersistentVolume) { v.Spec.VolumeMode = new(corev1.PersistentVolumeBlock) }
	volumes := scheduling.VolumesOf(pod, planning{objects: []obj.Object{claimNamed("a", BoundTo("pv-a")), storedVolume("pv-a", block)}}.view())
	require.Len(t, volumes, 3, "one for each volume of the pod that stands for a claim, in their order")
	assert.Equal(t, []string{"vol-b", "vol-a", "vol-b"}, []string{volumes[0].Name, volumes[1].Name, volumes[2].Name})
	assert.Equal(t, []bool{false, true, false}, []bool{volumes[0].ReadOnly, volumes[1].ReadOnly, volumes[2].ReadOnly})
	assert.Equal(t, corev1.PersistentVolumeBlock, volumes[1].Mode)
	assert.Empty(t, volumes[0].Mode)
}
