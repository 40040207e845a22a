package scheduling_test

import (
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"

	"github.com/pvbind/pvbind/binding/bindingtest"
	"github.com/pvbind/pvbind/binding/decision"
	. "github.com/pvbind/pvbind/binding/internal/testkit"
	"github.com/pvbind/pvbind/binding/obj"
	"github.com/pvbind/pvbind/binding/scheduling"
	"github.com/pvbind/pvbind/reclaim"
)

// stepText is a step in one line: its kind, what it changes in the object, or why to give up.
func stepText(step scheduling.Step, view scheduling.Snapshot) string {
	text := step.Rule + " " + string(step.Kind)
	switch step.Kind {
	case decision.UpdateVolume:
		before, _ := view.Volume(step.Volume.Name)
		text += " " + step.Volume.Name + " " + bindingtest.Diff(before, step.Volume)
	case decision.UpdateClaim:
		before, _ := view.Claim(step.Claim.Namespace, step.Claim.Name)
		text += " " + step.Claim.Name + " " + bindingtest.Diff(before, step.Claim)
	case scheduling.GiveUp:
		for _, reason := range step.Reasons {
			text += " " + reason.Claim.Name + " " + string(reason.Cause)
		}
	case decision.Wait:
		text += " " + step.Why
	}
	return text
}

// A static binding and a provision, planned on node-a when the claims are of version 7 and the volume is of 8.
func TestNextForPlan(t *testing.T) {
	planned := planning{podWith("data", "logs"), []obj.Object{claimNamed("data"), claimNamed("logs", RequestingClass(new("slow"))), manualClass(),
		ClassOf("slow", csiDriver, WaitsForFirstConsumer), storedVolume("pv-a", OnlyIn("a"))}}
	plan := planned.on(t, NodeIn("a"))
	require.Equal(t, "data pv-a, logs provision", planText(plan))

	newerClaim := func(c *corev1.PersistentVolumeClaim) { c.ResourceVersion = "11" }
	olderClaim := func(c *corev1.PersistentVolumeClaim) { c.ResourceVersion = "6" }
	newer := func(v *corev1.PersistentVolume) { v.ResourceVersion = "12" }
	data := func(edits ...ClaimEdit) *corev1.PersistentVolumeClaim { return claimNamed("data", edits...) }
	logs := func(edits ...ClaimEdit) *corev1.PersistentVolumeClaim {
		return claimNamed("logs", append([]ClaimEdit{RequestingClass(new("slow"))}, edits...)...)
	}
	held := RefersTo("default", "data", "uid-of-data")
	volume := func(edits ...VolumeEdit) *corev1.PersistentVolume {
		return storedVolume("pv-a", append([]VolumeEdit{OnlyIn("a")}, edits...)...)
	}
	selected := ClaimNote(SelectedNode, "node-a")
	made := storedVolume("pvc-1", OnlyIn("a"), RefersTo("default", "logs", "uid-of-logs"))
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
		"S8 named and not complete":           {[]obj.Object{data(Naming("pv-a"), newerClaim), logs(selected, newerClaim), volume(held, newer)}, "S8 Wait waiting for pvc/default/data to be bound to pv-a"},
		"S8 bound, the other is awaited":      {[]obj.Object{data(BoundTo("pv-a"), newerClaim), logs(selected, newerClaim), volume(held, newer)}, "S8 Wait waiting for a volume for pvc/default/logs"},
		"S8 its volume is not known yet":      {[]obj.Object{data(BoundTo("pv-a"), newerClaim), logs(selected, Naming("pvc-1"), newerClaim), volume(held, newer)}, "S8 Wait waiting for volume pvc-1"},
		"S8 its volume is not complete":       {[]obj.Object{data(BoundTo("pv-a"), newerClaim), logs(selected, Naming("pvc-1"), newerClaim), volume(held, newer), made}, "S8 Wait waiting for pvc/default/logs to be bound to pvc-1"},
		"S8 done":                             {[]obj.Object{data(BoundTo("pv-a"), newerClaim), logs(selected, BoundTo("pvc-1"), newerClaim), volume(held, newer), made}, "S8 "},
		"S8 done though nobody selected":      {[]obj.Object{data(BoundTo("pv-a"), newerClaim), logs(BoundTo("pvc-1"), newerClaim), volume(held, newer), made}, "S8 "},

		"S8 a claim is gone":            {[]obj.Object{logs(), volume()}, "S8 GiveUp data ClaimAbsent"},
		"S8 another of its name":        {[]obj.Object{data(func(c *corev1.PersistentVolumeClaim) { c.UID = "uid-2" }), logs(), volume()}, "S8 GiveUp data ClaimAbsent"},
		"S8 a claim is being deleted":   {[]obj.Object{data(), logs(ClaimBeingDeleted), volume()}, "S8 GiveUp logs ClaimDeleting"},
		"S8 a claim is Lost":            {[]obj.Object{data(ClaimPhase(corev1.ClaimLost)), logs(), volume()}, "S8 GiveUp data ClaimLost"},
		"S8 the volume is gone":         {[]obj.Object{data(), logs()}, "S8 GiveUp data VolumeAbsent"},
		"S8 another of the name":        {[]obj.Object{data(), logs(), volume(func(v *corev1.PersistentVolume) { v.UID = "uid-2" })}, "S8 GiveUp data VolumeAbsent"},
		"S8 claimRef taken away":        {[]obj.Object{data(), logs(), volume(newer)}, "S8 GiveUp data VolumeTaken"},
		"S8 its UID cleared":            {[]obj.Object{data(), logs(), volume(newer, RefersTo("default", "data", ""))}, "S8 GiveUp data VolumeTaken"},
		"S8 M2 another is bound to it":  {[]obj.Object{data(), logs(), volume(), claimNamed("owner", BoundTo("pv-a"))}, "S8 GiveUp data VolumeTaken"},
		"S8 given to another":           {[]obj.Object{data(), logs(), volume(newer, RefersToOther)}, "S8 GiveUp data VolumeTaken"},
		"S8 the claim got another":      {[]obj.Object{data(BoundTo("pv-z"), newerClaim), logs(), volume()}, "S8 GiveUp data BoundElsewhere"},
		"S8 node affinity changed":      {[]obj.Object{data(), logs(), volume(held, newer, OnlyIn("b"))}, "S8 GiveUp data VolumeElsewhere"},
		"S8 provisioned elsewhere":      {[]obj.Object{data(), logs(selected, BoundTo("pvc-1"), newerClaim), volume(), storedVolume("pvc-1", OnlyIn("b"))}, "S8 GiveUp logs VolumeElsewhere"},
		"S8 selected-node removed":      {[]obj.Object{data(), logs(newerClaim), volume(held, newer)}, "S8 GiveUp logs Deselected"},
		"S8 selected-node for another":  {[]obj.Object{data(), logs(newerClaim, ClaimNote(SelectedNode, "node-b")), volume()}, "S8 GiveUp logs ProvisionedElsewhere"},
		"S8 every reason, and no write": {[]obj.Object{data(), logs(newerClaim), volume(newer)}, "S8 GiveUp data VolumeTaken logs Deselected"},

		"S8 a view behind the plan": {[]obj.Object{data(olderClaim), logs(selected, newerClaim), volume()}, "S8 Wait waiting for a newer version of pvc/default/data"},
		"S8 a volume behind it":     {[]obj.Object{data(), logs(selected, newerClaim), volume(func(v *corev1.PersistentVolume) { v.ResourceVersion = "3" })}, "S8 Wait waiting for a newer version of pv/pv-a"},
	} {
		t.Run(name, func(t *testing.T) {
			view := planning{objects: c.objects}.view()
			before := CopyOf(view.Snapshot)
			step, err := scheduling.NextForPlan(plan, view)
			require.NoError(t, err)
			assert.Equal(t, c.want, stepText(step, view))
			assert.Equal(t, before, view.Snapshot, "X6")
			slices.Reverse(view.Claims)
			slices.Reverse(view.Volumes)
			again, err := scheduling.NextForPlan(plan, view)
			require.NoError(t, err)
			assert.Equal(t, step, again)
		})
	}
}

func TestNextForPlanOfNone(t *testing.T) {
	view := podPlanning(claimNamed("data"), manualClass()).view()
	step, err := scheduling.NextForPlan(podPlanning(claimNamed("data"), manualClass()).on(t, NodeIn("a")), view)
	require.NoError(t, err)
	assert.Equal(t, "S8 GiveUp data NoVolume", stepText(step, view), "a plan that does not fit")
	step, err = scheduling.NextForPlan(podPlanning(claimNamed("data"), ClassOf("fast", csiDriver)).on(t, NodeIn("a")), view)
	require.NoError(t, err)
	assert.Equal(t, "S8 GiveUp data ClaimUnbound", stepText(step, view), "nor one that is refused")
	step, err = scheduling.NextForPlan(planning{pod: podWith()}.on(t, NodeIn("a")), view)
	require.NoError(t, err)
	assert.Equal(t, decision.Nothing, step.Kind, "no claims, nothing to do")

	nameless := claimNamed("data", func(c *corev1.PersistentVolumeClaim) { c.UID = "" })
	p := podPlanning(nameless, manualClass(), storedVolume("pv-a"))
	_, err = scheduling.NextForPlan(p.on(t, NodeIn("a")), p.view())
	require.EqualError(t, err, "pvc/default/data: metadata.uid: is missing")
}

// A reservation that a person made keeps its lack of bound-by-controller (B1).
func TestNextForPlanOfAReservation(t *testing.T) {
	p := podPlanning(claimNamed("data"), manualClass(), storedVolume("pv-a", RefersTo("default", "data", "")))
	step, err := scheduling.NextForPlan(p.on(t, NodeIn("a")), p.view())
	require.NoError(t, err)
	assert.Equal(t, decision.UpdateVolume, step.Kind)
	assert.Equal(t, "uid-of-data", string(step.Volume.Spec.ClaimRef.UID))
	assert.NotContains(t, step.Volume.Annotations, BoundBy)
}

// R8: nobody gets a volume whose storage may be destroyed, not even whom it is reserved for.
func TestNextForPlanR8AnAnnouncedReservation(t *testing.T) {
	announced := VolumeNote(reclaim.AnnouncementAnnotation, `{"by":"another","token":5,"recycles":true}`)
	p := podPlanning(claimNamed("data"), manualClass(), storedVolume("pv-a", RefersTo("default", "data", ""), announced))
	view := p.view()
	step, err := scheduling.NextForPlan(p.on(t, NodeIn("a")), view)
	require.NoError(t, err)
	assert.Equal(t, "S8 GiveUp data VolumeTaken", stepText(step, view))
}
