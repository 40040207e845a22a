package binding_test

import (
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"

	"github.com/pvbind/pvbind/binding"
	"github.com/pvbind/pvbind/binding/bindingtest"
	"github.com/pvbind/pvbind/binding/obj"
)

// stepText is a step in one line: its kind, what it changes in the object, or why to give up.
func stepText(step binding.PlanStep, view binding.PodSnapshot) string {
	text := step.Rule + " " + string(step.Kind)
	switch step.Kind {
	case binding.UpdateVolume:
		before, _ := view.Volume(step.Volume.Name)
		text += " " + step.Volume.Name + " " + bindingtest.Diff(before, step.Volume)
	case binding.UpdateClaim:
		before, _ := view.Claim(step.Claim.Namespace, step.Claim.Name)
		text += " " + step.Claim.Name + " " + bindingtest.Diff(before, step.Claim)
	case binding.GiveUp:
		for _, reason := range step.Reasons {
			text += " " + reason.Claim.Name + " " + string(reason.Cause)
		}
	case binding.Wait:
		text += " " + step.Why
	}
	return text
}

// A static binding and a provision, planned on node-a when the claims are of version 7 and the volume is of 8.
func TestNextForPlan(t *testing.T) {
	planned := planning{podWith("data", "logs"), []obj.Object{claimNamed("data"), claimNamed("logs", askingClass(new("slow"))), manualClass(),
		classOf("slow", csiDriver, delayedClass), storedVolume("pv-a", onlyIn("a"))}}
	plan := planned.on(t, nodeIn("a"))
	require.Equal(t, "data pv-a, logs provision", planText(plan))

	newerClaim := func(c *corev1.PersistentVolumeClaim) { c.ResourceVersion = "11" }
	olderClaim := func(c *corev1.PersistentVolumeClaim) { c.ResourceVersion = "6" }
	newer := func(v *corev1.PersistentVolume) { v.ResourceVersion = "12" }
	data := func(edits ...claimEdit) *corev1.PersistentVolumeClaim { return claimNamed("data", edits...) }
	logs := func(edits ...claimEdit) *corev1.PersistentVolumeClaim {
		return claimNamed("logs", append([]claimEdit{askingClass(new("slow"))}, edits...)...)
	}
	held := refersTo("default", "data", "uid-of-data")
	volume := func(edits ...volumeEdit) *corev1.PersistentVolume {
		return storedVolume("pv-a", append([]volumeEdit{onlyIn("a")}, edits...)...)
	}
	selected := claimNote(selectedNode, "node-a")
	made := storedVolume("pvc-1", onlyIn("a"), refersTo("default", "logs", "uid-of-logs"))
	const reserves = "B1 UpdateVolume pv-a spec.claimRef={default/data uid-of-data} +annotation pv.kubernetes.io/bound-by-controller"
	const selects = "S8 UpdateClaim logs +annotation volume.kubernetes.io/selected-node=node-a"
	for name, c := range map[string]struct {
		objects []obj.Object
		want    string
	}{
		"B1 first the volume":                 {[]obj.Object{data(), logs(), volume()}, reserves},
		"S8 then the claim":                   {[]obj.Object{data(), logs(), volume(held, newer)}, selects},
		"B1 though the claim is done already": {[]obj.Object{data(), logs(selected, newerClaim), volume()}, reserves},
		"S8 then the rest is awaited":         {[]obj.Object{data(), logs(selected, newerClaim), volume(held, newer)}, "S8 Wait waiting for pvc/default/data to be bound to pv-a"},
		"S8 named and not complete":           {[]obj.Object{data(naming("pv-a"), newerClaim), logs(selected, newerClaim), volume(held, newer)}, "S8 Wait waiting for pvc/default/data to be bound to pv-a"},
		"S8 bound, the other is awaited":      {[]obj.Object{data(boundTo("pv-a"), newerClaim), logs(selected, newerClaim), volume(held, newer)}, "S8 Wait waiting for a volume for pvc/default/logs"},
		"S8 its volume is not known yet":      {[]obj.Object{data(boundTo("pv-a"), newerClaim), logs(selected, naming("pvc-1"), newerClaim), volume(held, newer)}, "S8 Wait waiting for volume pvc-1"},
		"S8 its volume is not complete":       {[]obj.Object{data(boundTo("pv-a"), newerClaim), logs(selected, naming("pvc-1"), newerClaim), volume(held, newer), made}, "S8 Wait waiting for pvc/default/logs to be bound to pvc-1"},
		"S8 done":                             {[]obj.Object{data(boundTo("pv-a"), newerClaim), logs(selected, boundTo("pvc-1"), newerClaim), volume(held, newer), made}, "S8 "},
		"S8 done though nobody selected":      {[]obj.Object{data(boundTo("pv-a"), newerClaim), logs(boundTo("pvc-1"), newerClaim), volume(held, newer), made}, "S8 "},

		"S8 a claim is gone":            {[]obj.Object{logs(), volume()}, "S8 GiveUp data ClaimAbsent"},
		"S8 another of its name":        {[]obj.Object{data(func(c *corev1.PersistentVolumeClaim) { c.UID = "uid-2" }), logs(), volume()}, "S8 GiveUp data ClaimAbsent"},
		"S8 a claim is being deleted":   {[]obj.Object{data(), logs(claimBeingDeleted), volume()}, "S8 GiveUp logs ClaimDeleting"},
		"S8 a claim is Lost":            {[]obj.Object{data(claimPhase(corev1.ClaimLost)), logs(), volume()}, "S8 GiveUp data ClaimLost"},
		"S8 the volume is gone":         {[]obj.Object{data(), logs()}, "S8 GiveUp data VolumeAbsent"},
		"S8 another of the name":        {[]obj.Object{data(), logs(), volume(func(v *corev1.PersistentVolume) { v.UID = "uid-2" })}, "S8 GiveUp data VolumeAbsent"},
		"S8 claimRef taken away":        {[]obj.Object{data(), logs(), volume(newer)}, "S8 GiveUp data VolumeTaken"},
		"S8 its UID cleared":            {[]obj.Object{data(), logs(), volume(newer, refersTo("default", "data", ""))}, "S8 GiveUp data VolumeTaken"},
		"S8 given to another":           {[]obj.Object{data(), logs(), volume(newer, refersToOther)}, "S8 GiveUp data VolumeTaken"},
		"S8 the claim got another":      {[]obj.Object{data(boundTo("pv-z"), newerClaim), logs(), volume()}, "S8 GiveUp data BoundElsewhere"},
		"S8 node affinity changed":      {[]obj.Object{data(), logs(), volume(held, newer, onlyIn("b"))}, "S8 GiveUp data VolumeElsewhere"},
		"S8 provisioned elsewhere":      {[]obj.Object{data(), logs(selected, boundTo("pvc-1"), newerClaim), volume(), storedVolume("pvc-1", onlyIn("b"))}, "S8 GiveUp logs VolumeElsewhere"},
		"S8 selected-node removed":      {[]obj.Object{data(), logs(newerClaim), volume(held, newer)}, "S8 GiveUp logs Deselected"},
		"S8 selected-node for another":  {[]obj.Object{data(), logs(newerClaim, claimNote(selectedNode, "node-b")), volume()}, "S8 GiveUp logs ProvisionedElsewhere"},
		"S8 every reason, and no write": {[]obj.Object{data(), logs(newerClaim), volume(newer)}, "S8 GiveUp data VolumeTaken logs Deselected"},

		"S8 a view behind the plan": {[]obj.Object{data(olderClaim), logs(selected, newerClaim), volume()}, "S8 Wait waiting for news of pvc/default/data"},
		"S8 a volume behind it":     {[]obj.Object{data(), logs(selected, newerClaim), volume(func(v *corev1.PersistentVolume) { v.ResourceVersion = "3" })}, "S8 Wait waiting for news of pv/pv-a"},
	} {
		t.Run(name, func(t *testing.T) {
			view := planning{objects: c.objects}.view()
			before := copyOf(view.Snapshot)
			step, err := binding.NextForPlan(plan, view)
			require.NoError(t, err)
			assert.Equal(t, c.want, stepText(step, view))
			assert.Equal(t, before, view.Snapshot, "X6")
			slices.Reverse(view.Claims)
			slices.Reverse(view.Volumes)
			again, err := binding.NextForPlan(plan, view)
			require.NoError(t, err)
			assert.Equal(t, step, again)
		})
	}
}

func TestNextForPlanOfNone(t *testing.T) {
	view := podPlanning(claimNamed("data"), manualClass()).view()
	step, err := binding.NextForPlan(podPlanning(claimNamed("data"), manualClass()).on(t, nodeIn("a")), view)
	require.NoError(t, err)
	assert.Equal(t, "S8 GiveUp data NoVolume", stepText(step, view), "a plan that does not fit")
	step, err = binding.NextForPlan(podPlanning(claimNamed("data"), classOf("fast", csiDriver)).on(t, nodeIn("a")), view)
	require.NoError(t, err)
	assert.Equal(t, "S8 GiveUp data ClaimUnbound", stepText(step, view), "nor one that is refused")
	step, err = binding.NextForPlan(planning{pod: podWith()}.on(t, nodeIn("a")), view)
	require.NoError(t, err)
	assert.Equal(t, binding.Nothing, step.Kind, "no claims, nothing to do")

	nameless := claimNamed("data", func(c *corev1.PersistentVolumeClaim) { c.UID = "" })
	p := podPlanning(nameless, manualClass(), storedVolume("pv-a"))
	_, err = binding.NextForPlan(p.on(t, nodeIn("a")), p.view())
	require.EqualError(t, err, "pvc/default/data: metadata.uid: is missing")
}

// A reservation that a person made keeps its lack of bound-by-controller (B1).
func TestNextForPlanOfAReservation(t *testing.T) {
	p := podPlanning(claimNamed("data"), manualClass(), storedVolume("pv-a", refersTo("default", "data", "")))
	step, err := binding.NextForPlan(p.on(t, nodeIn("a")), p.view())
	require.NoError(t, err)
	assert.Equal(t, binding.UpdateVolume, step.Kind)
	assert.Equal(t, "uid-of-data", string(step.Volume.Spec.ClaimRef.UID))
	assert.NotContains(t, step.Volume.Annotations, boundBy)
}
