package binding_test

import (
	"iter"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/pvbind/pvbind/binding/bindingtest"
	"github.com/pvbind/pvbind/binding/decision"
	"github.com/pvbind/pvbind/binding/index"
	"github.com/pvbind/pvbind/binding/match"
	"github.com/pvbind/pvbind/binding/obj"
	"github.com/pvbind/pvbind/binding/scheduling"
	"github.com/pvbind/pvbind/phase"
	"github.com/pvbind/pvbind/reclaim"
	"github.com/pvbind/pvbind/storageclass"
)

// largeObject is a kind of object and a field of it that can be large.
type largeObject struct {
	name   string
	most   int                       // of the field, in an object of about a megabyte
	object func(n int) []obj.Object  // the object, and ordinary ones that it needs
	beside func([]obj.Object) func() // what a bystander does, where that is not the Controller's
	by     map[string]func(obj.Object) func()
}

// calls returns what is done with the object, by name.
func (l largeObject) calls() iter.Seq2[string, func([]obj.Object) func()] {
	return func(yield func(string, func([]obj.Object) func()) bool) {
		for name, call := range l.by {
			if !yield(name, func(objects []obj.Object) func() { return call(objects[0]) }) {
				return
			}
		}
	}
}

func largeObjects() []largeObject {
	var rows []largeObject
	claims := func(name string, most int, size string, change func(*corev1.PersistentVolumeClaim, int)) {
		rows = append(rows, largeObject{name: "claim/" + name, most: most, by: claimCalls, object: func(n int) []obj.Object {
			claim := bindingtest.Claim("tenant", "large", size, noClass)
			change(claim, n)
			return []obj.Object{claim}
		}})
	}
	selectors := func(name string, most int, expressions func(n int) []metav1.LabelSelectorRequirement) {
		claims("selector/"+name, most, "1Gi", func(claim *corev1.PersistentVolumeClaim, n int) {
			claim.Spec.Selector = &metav1.LabelSelector{MatchExpressions: expressions(n)}
		})
	}
	selectors("In values", 80_000, func(n int) []metav1.LabelSelectorRequirement {
		return []metav1.LabelSelectorRequirement{{Key: "app", Operator: metav1.LabelSelectorOpIn, Values: names(n)}}
	})
	selectors("NotIn values", 80_000, func(n int) []metav1.LabelSelectorRequirement {
		return []metav1.LabelSelectorRequirement{{Key: "app", Operator: metav1.LabelSelectorOpNotIn, Values: append(names(n), "web")}}
	})
	selectors("Exists", 16_000, func(n int) (required []metav1.LabelSelectorRequirement) {
		for _, name := range names(n) {
			required = append(required, metav1.LabelSelectorRequirement{Key: name, Operator: metav1.LabelSelectorOpExists})
		}
		return required
	})
	selectors("DoesNotExist", 16_000, func(n int) (required []metav1.LabelSelectorRequirement) {
		for _, name := range append(names(n), "app") {
			required = append(required, metav1.LabelSelectorRequirement{Key: name, Operator: metav1.LabelSelectorOpDoesNotExist})
		}
		return required
	})
	selectors("one key In", 12_000, func(n int) (required []metav1.LabelSelectorRequirement) {
		for _, name := range names(n) {
			required = append(required, metav1.LabelSelectorRequirement{Key: "app", Operator: metav1.LabelSelectorOpIn, Values: []string{"web", name}})
		}
		return required
	})
	claims("selector/labels", 50_000, "1Gi", func(claim *corev1.PersistentVolumeClaim, n int) {
		claim.Spec.Selector = &metav1.LabelSelector{MatchLabels: labelled(n)}
	})
	claims("annotations", 40_000, "900Gi", func(claim *corev1.PersistentVolumeClaim, n int) { claim.Annotations = labelled(n) })
	claims("labels", 50_000, "900Gi", func(claim *corev1.PersistentVolumeClaim, n int) { claim.Labels = labelled(n) })
	claims("finalizers", 60_000, "900Gi", func(claim *corev1.PersistentVolumeClaim, n int) { claim.Finalizers = finalizers(n) })
	claims("owners", 8_000, "900Gi", func(claim *corev1.PersistentVolumeClaim, n int) {
		for _, name := range names(n) {
			claim.OwnerReferences = append(claim.OwnerReferences, metav1.OwnerReference{APIVersion: "v1", Kind: "Pod", Name: name, UID: "u"})
		}
	})
	claims("access modes", 60_000, "900Gi", func(claim *corev1.PersistentVolumeClaim, n int) { claim.Spec.AccessModes = modes(n) })
	claims("data source", 1_000_000, "900Gi", func(claim *corev1.PersistentVolumeClaim, n int) {
		claim.Spec.DataSource = &corev1.TypedLocalObjectReference{Kind: "PersistentVolumeClaim", Name: strings.Repeat("a", n)}
	})
	claims("digits", 100_000, "900Gi", func(claim *corev1.PersistentVolumeClaim, n int) {
		claim.Spec.Resources.Requests[corev1.ResourceStorage] = resource.MustParse(strings.Repeat("7", n))
	})
	claims("volume name", 1_400_000, "900Gi", func(claim *corev1.PersistentVolumeClaim, n int) { claim.Spec.VolumeName = long(n) })
	claims("volume name, bound before", 1_400_000, "900Gi", func(claim *corev1.PersistentVolumeClaim, n int) {
		claim.Spec.VolumeName, claim.Annotations = long(n), map[string]string{phase.BindCompletedAnnotation: ""}
	})
	for _, annotation := range []string{corev1.BetaStorageClassAnnotation, storageclass.SelectedNodeAnnotation, storageclass.ProvisionerAnnotation} {
		rows = append(rows, annotatedClaim(annotation))
	}
	claims("exponent", 1_000_000_000, "900Gi", func(claim *corev1.PersistentVolumeClaim, n int) {
		claim.Spec.Resources.Requests[corev1.ResourceStorage] = resource.MustParse("1e" + strconv.Itoa(max(n, 21)))
	})

	volumes := func(name string, most int, change func(*corev1.PersistentVolume, int)) {
		rows = append(rows, largeObject{name: "volume/" + name, most: most, by: volumeCalls, object: func(n int) []obj.Object {
			volume := bindingtest.Volume("large", "1Gi")
			change(volume, n)
			return []obj.Object{volume}
		}})
	}
	affinity := func(name string, most int, terms func(n int) []corev1.NodeSelectorTerm) {
		volumes("affinity/"+name, most, func(volume *corev1.PersistentVolume, n int) {
			volume.Spec.NodeAffinity = &corev1.VolumeNodeAffinity{Required: &corev1.NodeSelector{NodeSelectorTerms: terms(n)}}
		})
	}
	in := func(key string, values ...string) corev1.NodeSelectorRequirement {
		return corev1.NodeSelectorRequirement{Key: key, Operator: corev1.NodeSelectorOpIn, Values: values}
	}
	affinity("terms", 16_000, func(n int) (terms []corev1.NodeSelectorTerm) {
		for _, name := range names(n) {
			terms = append(terms, corev1.NodeSelectorTerm{MatchExpressions: []corev1.NodeSelectorRequirement{in("host", name)}})
		}
		return terms
	})
	affinity("NotIn terms", 12_000, func(n int) (terms []corev1.NodeSelectorTerm) {
		for _, name := range names(n) {
			required := corev1.NodeSelectorRequirement{Key: "host", Operator: corev1.NodeSelectorOpNotIn, Values: []string{"node", name}}
			terms = append(terms, corev1.NodeSelectorTerm{MatchExpressions: []corev1.NodeSelectorRequirement{required}})
		}
		return terms
	})
	affinity("terms of one key each", 16_000, func(n int) (terms []corev1.NodeSelectorTerm) {
		for _, name := range names(n) {
			terms = append(terms, corev1.NodeSelectorTerm{MatchExpressions: []corev1.NodeSelectorRequirement{in(name, "a")}})
		}
		return terms
	})
	affinity("values", 80_000, func(n int) []corev1.NodeSelectorTerm {
		return []corev1.NodeSelectorTerm{{MatchExpressions: []corev1.NodeSelectorRequirement{in("host", names(n)...)}}}
	})
	affinity("expressions", 16_000, func(n int) []corev1.NodeSelectorTerm {
		var term corev1.NodeSelectorTerm
		for _, name := range names(n) {
			term.MatchExpressions = append(term.MatchExpressions, in(name, "a"))
		}
		return []corev1.NodeSelectorTerm{term, term}
	})
	volumes("labels", 50_000, func(volume *corev1.PersistentVolume, n int) { volume.Labels = labelled(n) })
	volumes("annotations", 40_000, func(volume *corev1.PersistentVolume, n int) { volume.Annotations = labelled(n) })
	volumes("finalizers", 60_000, func(volume *corev1.PersistentVolume, n int) { volume.Finalizers = finalizers(n) })

	pods := func(name string, most int, change func(*corev1.Pod, int)) {
		rows = append(rows, largeObject{name: "pod/" + name, most: most, by: podCalls, object: func(n int) []obj.Object {
			pod := bindingtest.Pod("tenant", "large", "node")
			change(pod, n)
			return []obj.Object{pod}
		}})
	}
	pods("claims", 9_000, func(pod *corev1.Pod, n int) {
		pod.Spec.Volumes = bindingtest.Pod("tenant", "large", "", names(n)...).Spec.Volumes
	})
	pods("one claim", 9_000, func(pod *corev1.Pod, n int) {
		pod.Spec.Volumes = bindingtest.Pod("tenant", "large", "", names(n)...).Spec.Volumes
		for i := range pod.Spec.Volumes {
			pod.Spec.Volumes[i].PersistentVolumeClaim.ClaimName = "one"
		}
	})
	pods("claim name", 1_400_000, func(pod *corev1.Pod, n int) {
		pod.Spec.Volumes = bindingtest.Pod("tenant", "large", "", "one").Spec.Volumes
		pod.Spec.Volumes[0].PersistentVolumeClaim.ClaimName = long(n)
	})
	pods("ephemeral", 8_000, func(pod *corev1.Pod, n int) {
		for _, name := range names(n) {
			source := corev1.VolumeSource{Ephemeral: &corev1.EphemeralVolumeSource{}}
			pod.Spec.Volumes = append(pod.Spec.Volumes, corev1.Volume{Name: name, VolumeSource: source})
		}
	})

	for name, most := range map[string]int{"values": 80_000, "keys": 16_000} {
		rows = append(rows, largeObject{name: "capacity/" + name, most: most, beside: planBesideCapacity, object: func(n int) []obj.Object {
			topology := &metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{{Key: "host", Operator: metav1.LabelSelectorOpIn, Values: names(n)}}}
			if name == "keys" {
				topology = &metav1.LabelSelector{MatchLabels: labelled(n)}
			}
			return []obj.Object{&storagev1.CSIStorageCapacity{
				ObjectMeta: metav1.ObjectMeta{Namespace: "kube-system", Name: "large"}, StorageClassName: "late",
				NodeTopology: topology, Capacity: new(resource.MustParse("100Gi")),
			}}
		}})
	}
	rows = append(rows, largeObject{name: "node/labels", most: 50_000, beside: planBesideNode, object: func(n int) []obj.Object {
		return []obj.Object{&corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "large", Labels: labelled(n)}}}
	}})
	return rows
}

// annotatedClaim is a claim that an external provisioner is to serve, with a long annotation. Its provisioner was another one before.
func annotatedClaim(annotation string) largeObject {
	return largeObject{name: "claim/annotation " + annotation, most: 250_000, by: claimCalls, object: func(n int) []obj.Object {
		class := bindingtest.Class("external", func(class *storagev1.StorageClass) {
			class.Provisioner, class.VolumeBindingMode = "csi.example.com", new(storagev1.VolumeBindingImmediate)
		})
		claim := bindingtest.Claim("tenant", "large", "900Gi", func(claim *corev1.PersistentVolumeClaim) {
			claim.Spec.StorageClassName, claim.Annotations = new("external"), map[string]string{annotation: long(n)}
			if annotation == storageclass.ProvisionerAnnotation {
				claim.Finalizers = []string{decision.ProvisioningFinalizer}
			}
		})
		return []obj.Object{claim, class}
	}}
}

// long returns a value of n bytes, each of which is written in two where it is quoted.
func long(n int) string { return strings.Repeat(`"`, n) }

func labelled(n int) map[string]string {
	made := make(map[string]string, n)
	for _, name := range names(n) {
		made[name] = ""
	}
	return made
}

func finalizers(n int) []string {
	made := names(n)
	for i := range made {
		made[i] = "e.g/" + made[i]
	}
	return made
}

func modes(n int) []corev1.PersistentVolumeAccessMode {
	made := make([]corev1.PersistentVolumeAccessMode, n)
	for i := range made {
		made[i] = corev1.ReadWriteOnce
	}
	return made
}

// planned is a pod of somebody else's, whose claim is to be provisioned for.
func planned(capacities ...*storagev1.CSIStorageCapacity) scheduling.Request {
	late := bindingtest.Class("late", func(class *storagev1.StorageClass) {
		class.VolumeBindingMode, class.Provisioner = new(storagev1.VolumeBindingWaitForFirstConsumer), "csi.example.com"
	})
	claim := bindingtest.Claim("other", "data", "1Gi", func(claim *corev1.PersistentVolumeClaim) { claim.Spec.StorageClassName = new("late") })
	driver := &storagev1.CSIDriver{ObjectMeta: metav1.ObjectMeta{Name: "csi.example.com"}, Spec: storagev1.CSIDriverSpec{StorageCapacity: new(true)}}
	view := scheduling.Snapshot{
		Snapshot:   decision.Snapshot{Claims: []*corev1.PersistentVolumeClaim{claim}, Classes: []*storagev1.StorageClass{late}},
		CSIDrivers: []*storagev1.CSIDriver{driver}, Capacities: capacities,
	}
	return scheduling.Request{Pod: bindingtest.Pod("other", "pod", "", "data"), View: view, Index: view.Index(), Assumptions: &scheduling.Assumptions{}}
}

func planBesideCapacity(objects []obj.Object) func() {
	request := planned(objects[0].(*storagev1.CSIStorageCapacity))
	return func() { _, _ = scheduling.PlanPod(request, aNode) }
}

// planBesideNode plans for a node that is not the large one, and for that too: a pod is planned for all.
func planBesideNode(objects []obj.Object) func() {
	request := planned()
	return func() { _, _ = scheduling.PlanPodOnNodes(request, []*corev1.Node{aNode, objects[0].(*corev1.Node)}) }
}

var aNode = &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "node", Labels: map[string]string{"host": "node", "app": "web"}}}

// labelledVolume is one that no large selector matches, and that is large enough for all.
var labelledVolume = bindingtest.Volume("ordinary", "950Gi", func(volume *corev1.PersistentVolume) {
	volume.Labels = map[string]string{"app": "web", "tier": "a"}
})

func indexOf(volumes ...*corev1.PersistentVolume) *index.Index {
	made := &index.Index{}
	made.Load(volumes...)
	return made
}

// claimCalls are the functions that look at a claim.
var claimCalls = map[string]func(obj.Object) func(){
	"match.Find": onClaim(func(claim *corev1.PersistentVolumeClaim) {
		_, _ = match.Find(match.Request{Claim: claim, Volumes: []*corev1.PersistentVolume{labelledVolume}})
	}),
	"match.Explain": onClaim(func(claim *corev1.PersistentVolumeClaim) {
		report, _ := match.Explain(match.Request{Claim: claim, Volumes: []*corev1.PersistentVolume{labelledVolume}})
		_ = report.String() + report.Table()
	}),
	"match.Check":      onClaim(func(claim *corev1.PersistentVolumeClaim) { _, _ = match.Check(claim, labelledVolume, match.Terms{}) }),
	"match.CheckNamed": onClaim(func(claim *corev1.PersistentVolumeClaim) { _, _ = match.CheckNamed(claim, labelledVolume, nil) }),
	"index.Find": onClaim(func(claim *corev1.PersistentVolumeClaim) {
		_, _ = indexOf(labelledVolume).Find(claim, match.Terms{Node: aNode})
	}),
	"index.Summary": onClaim(func(claim *corev1.PersistentVolumeClaim) {
		_, _ = indexOf(labelledVolume).Summary(claim, match.Terms{})
	}),
	"index.CanBind": onClaim(func(claim *corev1.PersistentVolumeClaim) {
		index.CanBind(claim, labelledVolume, func(*corev1.PersistentVolumeClaim) match.Terms { return match.Terms{} })
	}),
	"index.WaitingClaims": onClaim(func(claim *corev1.PersistentVolumeClaim) {
		var waiting index.WaitingClaims
		waiting.Set(claim, match.Terms{Parsed: match.Parse(claim)})
		waiting.First(labelledVolume, func(*corev1.PersistentVolumeClaim) bool { return true })
		waiting.Set(claim, match.Terms{Parsed: match.Parse(claim)})
		waiting.Delete(obj.KeyOf(claim))
	}),
	"decision.ExplainClaim": onClaim(func(claim *corev1.PersistentVolumeClaim) {
		view := decision.Snapshot{Claims: []*corev1.PersistentVolumeClaim{claim}, Volumes: []*corev1.PersistentVolume{labelledVolume}}
		_, _ = decision.ExplainClaim(claim, view, decision.Options{Protection: decision.ProtectionOn})
	}),
	"decision.CheckPair": onClaim(func(claim *corev1.PersistentVolumeClaim) {
		view := decision.Snapshot{Claims: []*corev1.PersistentVolumeClaim{claim}, Volumes: []*corev1.PersistentVolume{labelledVolume}}
		_, _ = decision.CheckPair(decision.PairRequest{Claim: claim, Volume: labelledVolume, View: view})
	}),
	"scheduling.PlanPod": onClaim(func(claim *corev1.PersistentVolumeClaim) {
		claim = claim.DeepCopy()
		claim.Spec.StorageClassName = new("late")
		late := bindingtest.Class("late", func(class *storagev1.StorageClass) {
			class.VolumeBindingMode = new(storagev1.VolumeBindingWaitForFirstConsumer)
		})
		volume := labelledVolume.DeepCopy()
		volume.Spec.StorageClassName = "late"
		view := scheduling.Snapshot{Snapshot: decision.Snapshot{
			Claims: []*corev1.PersistentVolumeClaim{claim}, Classes: []*storagev1.StorageClass{late}, Volumes: []*corev1.PersistentVolume{volume},
		}}
		request := scheduling.Request{Pod: bindingtest.Pod("tenant", "pod", "", "large"), View: view, Index: view.Index()}
		plan, _ := scheduling.PlanPod(request, aNode)
		_ = scheduling.PackingShape().Score(plan)
		if assumed, ok := new(scheduling.Assumptions).Assume(request.Index, plan); ok {
			assumed.Revert()
		}
	}),
	"reclaim.Reserve": onClaim(func(claim *corev1.PersistentVolumeClaim) {
		_, _ = reclaim.Reserve(labelledVolume, claim, reclaim.Known{AllClaims: true})
	}),
}

func onClaim(call func(*corev1.PersistentVolumeClaim)) func(obj.Object) func() {
	return func(object obj.Object) func() {
		return func() { call(object.(*corev1.PersistentVolumeClaim)) }
	}
}

// volumeCalls are the functions that look at a volume.
var volumeCalls = map[string]func(obj.Object) func(){
	"match.Explain": onVolume(func(volume *corev1.PersistentVolume) {
		report, _ := match.Explain(match.Request{Claim: picky, Volumes: []*corev1.PersistentVolume{volume}, Terms: match.Terms{Node: aNode}})
		_ = report.String() + report.Table()
	}),
	"match.UsableOn": onVolume(func(volume *corev1.PersistentVolume) { match.UsableOn(aNode, volume) }),
	"index": onVolume(func(volume *corev1.PersistentVolume) {
		volumes := indexOf(volume)
		_, _ = volumes.Find(picky, match.Terms{Node: aNode})
		_, _ = volumes.Summary(picky, match.Terms{Node: aNode})
		volumes.Reserve(volume.Name, volume.ResourceVersion, obj.KeyOf(picky))
		volumes.Delete(volume.Name)
	}),
	"decision.CheckPair": onVolume(func(volume *corev1.PersistentVolume) {
		view := decision.Snapshot{Claims: []*corev1.PersistentVolumeClaim{picky}, Volumes: []*corev1.PersistentVolume{volume}}
		_, _ = decision.CheckPair(decision.PairRequest{Claim: picky, Volume: volume, View: view})
	}),
	"decision.NextForVolume": onVolume(func(volume *corev1.PersistentVolume) {
		_, _ = decision.NextForVolume(volume, decision.Snapshot{Volumes: []*corev1.PersistentVolume{volume}}, decision.Options{Protection: decision.ProtectionOn})
	}),
	"reclaim.MakeAvailable": onVolume(func(volume *corev1.PersistentVolume) {
		_, _ = reclaim.MakeAvailable(volume, reclaim.Known{AllClaims: true})
	}),
}

// picky is a claim that the large volumes do not fit.
var picky = bindingtest.Claim("other", "picky", "1Gi", noClass, func(claim *corev1.PersistentVolumeClaim) {
	claim.Spec.Selector = &metav1.LabelSelector{MatchLabels: map[string]string{"app": "none"}}
})

func onVolume(call func(*corev1.PersistentVolume)) func(obj.Object) func() {
	return func(object obj.Object) func() {
		return func() { call(object.(*corev1.PersistentVolume)) }
	}
}

// podCalls are the functions that look at a pod.
var podCalls = map[string]func(obj.Object) func(){
	"reclaim.ClaimNames": onPod(func(pod *corev1.Pod) { reclaim.ClaimNames(pod) }),
	"scheduling.VolumesOf": onPod(func(pod *corev1.Pod) {
		scheduling.VolumesOf(pod, decision.Snapshot{})
	}),
	"scheduling.PlanPod": func(object obj.Object) func() {
		pod, view := object.(*corev1.Pod), boundClaims{}
		for _, name := range reclaim.ClaimNames(pod) {
			view[name] = bindingtest.Claim("tenant", name, "1Gi", func(claim *corev1.PersistentVolumeClaim) {
				claim.Spec.VolumeName, claim.Annotations = "shared", map[string]string{phase.BindCompletedAnnotation: "yes"}
				claim.OwnerReferences = []metav1.OwnerReference{{UID: pod.UID, Controller: new(true)}}
			})
		}
		return func() {
			_, _ = scheduling.PlanPodOnNodes(scheduling.Request{Pod: pod, View: view}, []*corev1.Node{aNode, aNode})
			scheduling.VolumesOf(pod, view)
		}
	},
}

// boundClaims is a View of claims by name, all bound to one volume.
type boundClaims map[string]*corev1.PersistentVolumeClaim

func (b boundClaims) Claim(_, name string) (*corev1.PersistentVolumeClaim, decision.Source) {
	return b[name], decision.FromCache
}

func (b boundClaims) Volume(string) (*corev1.PersistentVolume, decision.Source) {
	return labelledVolume, decision.FromCache
}

func (b boundClaims) Owners(string) []obj.Key                                     { return nil }
func (b boundClaims) Class(string) *storagev1.StorageClass                        { return nil }
func (b boundClaims) CSIDriver(string) *storagev1.CSIDriver                       { return nil }
func (b boundClaims) CSIStorageCapacities(string) []*storagev1.CSIStorageCapacity { return nil }

func onPod(call func(*corev1.Pod)) func(obj.Object) func() {
	return func(object obj.Object) func() {
		return func() { call(object.(*corev1.Pod)) }
	}
}
