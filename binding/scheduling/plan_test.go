package scheduling_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	. "github.com/pvbind/pvbind/binding/internal/testkit"
	"github.com/pvbind/pvbind/binding/obj"
	"github.com/pvbind/pvbind/binding/scheduling"
)

type planRow struct {
	planning
	want string // on a node in zone a
	says []scheduling.NodeReason
}

func runPlans(t *testing.T, rows map[string]planRow) {
	for name, row := range rows {
		t.Run(name, func(t *testing.T) {
			plan := row.on(t, NodeIn("a"))
			assert.Equal(t, row.want, planText(plan))
			assert.Equal(t, row.says, plan.NodeReasons())
			assert.Equal(t, len(plan.Refused)+len(plan.Reasons) == 0, plan.Fits())
		})
	}
}

// S1, S2: what is decided before any node is looked at.
func TestPlanPodRefuses(t *testing.T) {
	lost := claimNamed("data", BoundTo("pv-a"), ClaimPhase(corev1.ClaimLost))
	fits := storedVolume("pv-a")
	immediate := ClassOf("fast", csiDriver)
	runPlans(t, map[string]planRow{
		"S1 a pod without claims":            {planning{pod: podWith()}, "", nil},
		"S1 a Lost claim":                    {podPlanning(lost, manualClass(), fits), "data ClaimLost pv-a", nil},
		"S1 a claim being deleted":           {podPlanning(claimNamed("data", ClaimBeingDeleted), manualClass(), fits), "data ClaimDeleting", nil},
		"S1 a bound claim being deleted":     {podPlanning(claimNamed("data", BoundTo("pv-a"), ClaimBeingDeleted), fits), "data ClaimDeleting pv-a", nil},
		"S1 a claim named twice":             {planning{podWith("data", "data"), []obj.Object{claimNamed("data"), manualClass(), fits, storedVolume("pv-b")}}, "data pv-a", nil},
		"S2 an Immediate class":              {podPlanning(claimNamed("data"), immediate, fits), "data ClaimUnbound", nil},
		"S2 no class":                        {podPlanning(claimNamed("data", RequestingClass(nil)), fits), "data ClaimUnbound", nil},
		"S2 a class that does not exist":     {podPlanning(claimNamed("data"), fits), "data ClaimUnbound", nil},
		"S2 a volume named and not bound":    {podPlanning(claimNamed("data", Naming("pv-a")), manualClass(), fits), "data ClaimUnbound pv-a", nil},
		"S2 bind-completed without a volume": {podPlanning(claimNamed("data", BoundTo("")), immediate, fits), "data ClaimUnbound", nil},
		"S1 S2 every claim's reason": {planning{podWith("b", "a", "c"), []obj.Object{claimNamed("a", ClaimBeingDeleted), claimNamed("b", ClaimPhase(corev1.ClaimLost)),
			claimNamed("c"), immediate}}, "a ClaimDeleting, b ClaimLost, c ClaimUnbound", nil},
	})
}

// S3: claims that are bound.
func TestPlanPodBound(t *testing.T) {
	bound := claimNamed("data", BoundTo("pv-a"))
	both := planning{podWith("data", "logs"), []obj.Object{bound, claimNamed("logs", BoundTo("pv-b"))}}
	runPlans(t, map[string]planRow{
		"S3 anywhere":      {podPlanning(bound, storedVolume("pv-a", BoundToClaim)), "", nil},
		"S3 here":          {podPlanning(bound, storedVolume("pv-a", BoundToClaim, OnlyIn("a"))), "", nil},
		"S3 elsewhere":     {podPlanning(bound, storedVolume("pv-a", BoundToClaim, OnlyIn("b"))), "data VolumeElsewhere pv-a", []scheduling.NodeReason{scheduling.NodeAffinityConflict}},
		"S3 nowhere":       {podPlanning(bound), "data VolumeAbsent pv-a", []scheduling.NodeReason{scheduling.NodeVolumeAbsent}},
		"S3 S9 the first":  {planning{both.pod, append(both.objects, storedVolume("pv-b", OnlyIn("b")))}, "data VolumeAbsent pv-a, logs VolumeElsewhere pv-b", []scheduling.NodeReason{scheduling.NodeVolumeAbsent}},
		"S3 S9 by the pod": {planning{podWith("logs", "data"), append(both.objects, storedVolume("pv-b", OnlyIn("b")))}, "data VolumeAbsent pv-a, logs VolumeElsewhere pv-b", []scheduling.NodeReason{scheduling.NodeAffinityConflict}},
		"S3 no class read": {podPlanning(bound, ClassOf("fast", csiDriver, func(c *storagev1.StorageClass) { c.VolumeBindingMode = nil }), storedVolume("pv-a", BoundToClaim)), "", nil},
	})
}

// S4, S6, M12, M13: volumes that exist.
func TestPlanPodStatic(t *testing.T) {
	claim, class := claimNamed("data"), manualClass()
	mine, mineHeld := RefersTo("default", "data", ""), RefersTo("default", "data", "uid-of-data")
	none := []scheduling.NodeReason{scheduling.NodeNoVolume}
	runPlans(t, map[string]planRow{
		"S4 none":                      {podPlanning(claim, class), "data NoVolume", none},
		"S4 none here":                 {podPlanning(claim, class, storedVolume("pv-a", OnlyIn("b"))), "data NoVolume", none},
		"S4 the smallest":              {podPlanning(claim, class, storedVolume("pv-a", Sized("20Gi")), storedVolume("pv-b", Sized("11Gi"), OnlyIn("a"))), "data pv-b", nil},
		"S6 of a size fewest modes":    {podPlanning(claim, class, storedVolume("pv-a", Offering("ReadWriteOnce", "ReadWriteMany")), storedVolume("pv-b", OnlyIn("a"))), "data pv-b", nil},
		"S6 then by name":              {podPlanning(claim, class, storedVolume("pv-b"), storedVolume("pv-a", OnlyIn("a"))), "data pv-a", nil},
		"M9 one that is Pending":       {podPlanning(claim, class, storedVolume("pv-a", InPhase(corev1.VolumePending))), "data pv-a", nil},
		"M13 what is pre-bound first":  {podPlanning(claim, class, storedVolume("pv-a"), storedVolume("pv-b", mine, Sized("50Gi"))), "data pv-b", nil},
		"M13 bound before pre-bound":   {podPlanning(claim, class, storedVolume("pv-a", mine), storedVolume("pv-b", mineHeld, Sized("50Gi"))), "data pv-b", nil},
		"M12 pre-bound, other class":   {podPlanning(claim, class, storedVolume("pv-a"), storedVolume("pv-b", mine, OfClass("slow"))), "data pv-b", nil},
		"M12 pre-bound but too small":  {podPlanning(claim, class, storedVolume("pv-a"), storedVolume("pv-b", mine, Sized("1Gi"))), "data pv-a", nil},
		"M12 pre-bound, modes lack":    {podPlanning(claim, class, storedVolume("pv-a"), storedVolume("pv-b", mine, Offering("ReadOnlyMany"))), "data pv-a", nil},
		"M13 pre-bound elsewhere":      {podPlanning(claim, class, storedVolume("pv-a"), storedVolume("pv-b", mine, OnlyIn("b"))), "data PreBoundElsewhere pv-b", none},
		"M13 several are elsewhere":    {podPlanning(claim, class, storedVolume("pv-c", mine, OnlyIn("b")), storedVolume("pv-a", mine, OnlyIn("b")), storedVolume("pv-b", mine, OnlyIn("b"))), "data PreBoundElsewhere pv-a", none},
		"M13 and provisioned here":     {podPlanning(claim, csiClass(), storedVolume("pv-a"), storedVolume("pv-b", mine, OnlyIn("b"))), "data provision", nil},
		"M13 elsewhere, another here":  {podPlanning(claim, class, storedVolume("pv-c"), storedVolume("pv-a", mine), storedVolume("pv-b", mine, OnlyIn("b"))), "data pv-a", nil},
		"M2 somebody else's":           {podPlanning(claim, class, storedVolume("pv-a", RefersToOther)), "data NoVolume", none},
		"M2 an owner without claimRef": {podPlanning(claim, class, storedVolume("pv-a"), claimNamed("stranger", BoundTo("pv-a"))), "data NoVolume", none},
	})
}

// S6: claims of one pod.
func TestPlanPodTogether(t *testing.T) {
	rwx := RequestingModes(corev1.ReadWriteMany)
	a, b, c := claimNamed("a", Requesting("1Gi")), claimNamed("b", Requesting("1Gi"), rwx), claimNamed("c", Requesting("2Gi"))
	p1 := storedVolume("p1", Sized("1Gi"), Offering(corev1.ReadWriteOnce, corev1.ReadWriteMany))
	p2 := storedVolume("p2", Sized("2Gi"))
	none := []scheduling.NodeReason{scheduling.NodeNoVolume}
	runPlans(t, map[string]planRow{
		"S6 upstream fails this pod":       {planning{podWith("a", "b"), []obj.Object{a, b, manualClass(), p1, p2}}, "a p2, b p1", nil},
		"S6 two want the only one":         {planning{podWith("a", "c"), []obj.Object{a, c, manualClass(), p2}}, "a Contended p2", none},
		"S6 the other is provisioned":      {planning{podWith("a", "c"), []obj.Object{a, c, csiClass(), p2}}, "c p2, a provision", nil},
		"S6 all are provisioned":           {planning{podWith("a", "c"), []obj.Object{a, c, csiClass()}}, "a provision, c provision", nil},
		"S6 who cannot be provisioned":     {planning{podWith("a", "c"), []obj.Object{claimNamed("a", Requesting("1Gi"), RequestingClass(new("slow"))), c, csiClass(), ClassOf("slow", "", WaitsForFirstConsumer), storedVolume("p2", Sized("2Gi"), OfClass("slow")), storedVolume("p3", Sized("1Gi"))}}, "a p2, c provision", nil},
		"S6 the smaller gets the smaller":  {planning{podWith("c", "d"), []obj.Object{c, claimNamed("d", Requesting("1Gi")), manualClass(), p2, storedVolume("p3", Sized("3Gi"))}}, "c p3, d p2", nil},
		"S6 named twice, one volume":       {planning{podWith("c", "c"), []obj.Object{c, manualClass(), p2}}, "c p2", nil},
		"S6 of equals by name":             {planning{podWith("b", "a"), []obj.Object{a, claimNamed("b", Requesting("1Gi")), manualClass(), p2, storedVolume("p3", Sized("3Gi"))}}, "a p2, b p3", nil},
		"S6 each has its own reservation":  {planning{podWith("a", "c"), []obj.Object{a, c, manualClass(), storedVolume("p9", RefersTo("default", "a", "")), storedVolume("p8", RefersTo("default", "c", ""))}}, "a p9, c p8", nil},
		"S6 a reservation is no other's":   {planning{podWith("a", "c"), []obj.Object{a, c, manualClass(), storedVolume("p9", RefersTo("default", "a", ""))}}, "c NoVolume", none},
		"S3 S4 bound and unbound together": {planning{podWith("a", "data"), []obj.Object{a, claimNamed("data", BoundTo("pv-a")), manualClass(), storedVolume("pv-a", OnlyIn("b"))}}, "data VolumeElsewhere pv-a, a NoVolume", []scheduling.NodeReason{scheduling.NodeAffinityConflict, scheduling.NodeNoVolume}},
	})
}

// S9: where several claims fail, kube-scheduler says why of the first. It looks at selected ones first, then by size.
func TestPlanPodReasons(t *testing.T) {
	manual, tells := ClassOf("manual", "", WaitsForFirstConsumer), capacityDriver(true)
	full := capacityIn("a", "500Mi")
	of := func(name, size, class string, edits ...ClaimEdit) *corev1.PersistentVolumeClaim {
		return claimNamed(name, append(edits, Requesting(size), RequestingClass(&class))...)
	}
	here := ClaimNote(SelectedNode, "node-a")
	volume := storedVolume("p5", Sized("5Gi"), OfClass("manual"))
	none, storage := []scheduling.NodeReason{scheduling.NodeNoVolume}, []scheduling.NodeReason{scheduling.NodeNoStorage}
	both := []scheduling.NodeReason{scheduling.NodeAffinityConflict, scheduling.NodeNoStorage}
	plan := func(pod *corev1.Pod, objects ...obj.Object) planning {
		return planning{pod, append(objects, manual, csiClass(), tells, full)}
	}
	runPlans(t, map[string]planRow{
		"S9 the smaller is manual":  {plan(podWith("a", "b"), of("a", "1Gi", "manual"), of("b", "2Gi", "fast")), "a NoVolume, b Storage", none},
		"S9 the smaller provisions": {plan(podWith("a", "b"), of("a", "2Gi", "manual"), of("b", "1Gi", "fast")), "a NoVolume, b Storage", storage},
		"S9 of a size by the pod":   {plan(podWith("b", "a"), of("a", "1Gi", "manual"), of("b", "1Gi", "fast")), "a NoVolume, b Storage", storage},
		"S9 a selected one first":   {plan(podWith("a", "b"), of("a", "1Gi", "manual"), of("b", "2Gi", "fast", here)), "a NoVolume, b Storage", storage},
		"S9 S6 the smaller takes it, and the larger fails": {plan(podWith("a", "b", "c"), of("a", "1Gi", "manual"), of("b", "2Gi", "manual"), of("c", "3Gi", "fast"), volume),
			"a Contended p5, c Storage", none},
		"S9 S3 and one for those that are bound": {plan(podWith("z", "a", "b"), claimNamed("z", BoundTo("pv-z")), of("a", "2Gi", "manual"), of("b", "1Gi", "fast"), storedVolume("pv-z", OnlyIn("b"))),
			"z VolumeElsewhere pv-z, a NoVolume, b Storage", both},
		"S9 S4 elsewhere, and one for those that are bound": {plan(podWith("z", "a"), claimNamed("z", BoundTo("pv-z")), of("a", "2Gi", "fast", ClaimNote(SelectedNode, "node-b"))),
			"z VolumeAbsent pv-z, a ProvisionedElsewhere", []scheduling.NodeReason{scheduling.NodeNoVolume, scheduling.NodeVolumeAbsent}},
	})
}

// S4: the selected node.
func TestPlanPodSelectedNode(t *testing.T) {
	here, there := claimNamed("data", ClaimNote(SelectedNode, "node-a")), claimNamed("data", ClaimNote(SelectedNode, "node-b"))
	none := []scheduling.NodeReason{scheduling.NodeNoVolume}
	runPlans(t, map[string]planRow{
		"S4 for this node means provision":         {podPlanning(here, csiClass(), storedVolume("pv-a")), "data provision", nil},
		"S4 for another rules this out":            {podPlanning(there, csiClass(), storedVolume("pv-a")), "data ProvisionedElsewhere", none},
		"S4 for no node":                           {podPlanning(claimNamed("data", ClaimNote(SelectedNode, "")), csiClass()), "data ProvisionedElsewhere", none},
		"S4 S5 for this node, provisions nothing":  {podPlanning(here, manualClass(), storedVolume("pv-a")), "data NoVolume", none},
		"S4 one of two, nothing else is looked at": {planning{podWith("data", "logs"), []obj.Object{there, claimNamed("logs"), csiClass()}}, "data ProvisionedElsewhere", none},
	})
}

// S5: who can be provisioned for.
func TestPlanPodProvisions(t *testing.T) {
	claim, tells := claimNamed("data"), capacityDriver(true)
	noRequest := claimNamed("data", func(c *corev1.PersistentVolumeClaim) { c.Spec.Resources.Requests = nil })
	limited := func(c *storagev1.CSIStorageCapacity) { c.MaximumVolumeSize = quantity("9Gi") }
	onlyLimit := func(c *storagev1.CSIStorageCapacity) { c.Capacity, c.MaximumVolumeSize = nil, quantity("10Gi") }
	says := func(nothing *storagev1.CSIStorageCapacity) { nothing.Capacity = nil }
	topology := func(s *metav1.LabelSelector) func(*storagev1.CSIStorageCapacity) {
		return func(c *storagev1.CSIStorageCapacity) { c.NodeTopology = s }
	}
	ofSlow := func(c *storagev1.CSIStorageCapacity) { c.StorageClassName = "slow" }
	none, full := []scheduling.NodeReason{scheduling.NodeNoVolume}, []scheduling.NodeReason{scheduling.NodeNoStorage}
	malformed := &metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{{Key: "zone", Operator: "Near"}}}
	notB := &metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{{Key: "zone", Operator: metav1.LabelSelectorOpNotIn, Values: []string{"b"}}}}
	inAB := &metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{{Key: "zone", Operator: metav1.LabelSelectorOpIn, Values: []string{"b", "a", "a"}}}}
	runPlans(t, map[string]planRow{
		"S5 no provisioner":             {podPlanning(claim, ClassOf("fast", "", WaitsForFirstConsumer)), "data NoVolume", none},
		"S5 topology allows":            {podPlanning(claim, csiClass(allowedIn("b", "a"))), "data provision", nil},
		"S5 topology does not":          {podPlanning(claim, csiClass(allowedIn("b"))), "data Topology", none},
		"S5 no driver object":           {podPlanning(claim, csiClass(), capacityIn("a", "1Gi")), "data provision", nil},
		"S5 the driver does not tell":   {podPlanning(claim, csiClass(), capacityDriver(false)), "data provision", nil},
		"S5 it says nothing of telling": {podPlanning(claim, csiClass(), &storagev1.CSIDriver{ObjectMeta: metav1.ObjectMeta{Name: csiDriver}}), "data provision", nil},
		"S5 nothing told":               {podPlanning(claim, csiClass(), tells), "data Storage", full},
		"S5 as much as needed":          {podPlanning(claim, csiClass(), tells, capacityIn("a", "10Gi")), "data provision from cap-a-10gi", nil},
		"S5 a byte less":                {podPlanning(claim, csiClass(), tells, capacityIn("a", "10737418239")), "data Storage", full},
		"S5 elsewhere":                  {podPlanning(claim, csiClass(), tells, capacityIn("b", "10Gi")), "data Storage", full},
		"S5 of another class":           {podPlanning(claim, csiClass(), tells, capacityIn("a", "10Gi", ofSlow)), "data Storage", full},
		"S5 no topology selects none":   {podPlanning(claim, csiClass(), tells, capacityIn("a", "10Gi", topology(nil))), "data Storage", full},
		"S5 an empty one selects all":   {podPlanning(claim, csiClass(), tells, capacityIn("b", "10Gi", topology(&metav1.LabelSelector{}))), "data provision from cap-b-10gi", nil},
		"S5 a malformed one none":       {podPlanning(claim, csiClass(), tells, capacityIn("a", "10Gi", topology(malformed))), "data Storage", full},
		"S5 by NotIn":                   {podPlanning(claim, csiClass(), tells, capacityIn("a", "10Gi", topology(notB))), "data provision from cap-a-10gi", nil},
		"S5 by In":                      {podPlanning(claim, csiClass(), tells, capacityIn("a", "10Gi", topology(inAB))), "data provision from cap-a-10gi", nil},
		"S5 one volume's limit counts":  {podPlanning(claim, csiClass(), tells, capacityIn("a", "90Gi", limited)), "data Storage", full},
		"S5 even alone":                 {podPlanning(claim, csiClass(), tells, capacityIn("a", "1Gi", onlyLimit)), "data provision from cap-a-1gi", nil},
		"S5 neither is said":            {podPlanning(claim, csiClass(), tells, capacityIn("a", "1Gi", says)), "data Storage", full},
		"S5 no request, no check":       {podPlanning(noRequest, csiClass(), tells), "data provision", nil},
		"S5 the roomiest":               {podPlanning(claim, csiClass(), tells, capacityIn("a", "20Gi"), capacityIn("a", "30Gi"), capacityIn("a", "10Gi")), "data provision from cap-a-30gi", nil},
		"S7 each claim alone": {planning{podWith("data", "logs"), []obj.Object{claim, claimNamed("logs"), csiClass(), tells, capacityIn("a", "10Gi")}},
			"data provision from cap-a-10gi, logs provision from cap-a-10gi", nil},
		"S9 storage, with a reservation elsewhere": {podPlanning(claim, csiClass(), tells, storedVolume("pv-b", RefersTo("default", "data", ""), OnlyIn("b"))), "data Storage", full},
	})
}
