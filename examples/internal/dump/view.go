package dump

import (
	"cmp"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/pvbind/pvbind/binding/decision"
	"github.com/pvbind/pvbind/binding/index"
	"github.com/pvbind/pvbind/binding/match"
	"github.com/pvbind/pvbind/binding/obj"
	"github.com/pvbind/pvbind/binding/scheduling"
	"github.com/pvbind/pvbind/phase"
	"github.com/pvbind/pvbind/reclaim"
	"github.com/pvbind/pvbind/storageclass"
)

// View is a decision.View of objects that are all there are. It looks each up in one step and finds volumes by an Index,
// so that many claims can be explained.
type View struct {
	// Volumes, Claims and Nodes are in the order of their names.
	Volumes []*corev1.PersistentVolume
	Claims  []*corev1.PersistentVolumeClaim
	Nodes   []*corev1.Node

	volumes    map[string]*corev1.PersistentVolume
	claims     map[obj.Key]*corev1.PersistentVolumeClaim
	namespaces map[string]bool // that have a claim
	classes    map[string]*storagev1.StorageClass
	csiNodes   map[string]*storagev1.CSINode
	byDefault  *storagev1.StorageClass
	pods       map[obj.Key][]*corev1.Pod // by the claims they name
	podCount   int
	attached   map[string][]*storagev1.VolumeAttachment   // by the volumes they name
	naming     map[string][]*corev1.PersistentVolumeClaim // by the volumes they name
	index      index.Index
}

var (
	_ decision.View          = &View{}
	_ scheduling.View        = &View{}
	_ scheduling.CSINodeView = &View{}
)

// Clock returns no time: nothing is announced on a dump.
func (v *View) Clock() time.Time { return time.Time{} }

// AnnouncedFor returns 0, for a dump shows one moment.
func (v *View) AnnouncedFor(obj.Key) time.Duration { return 0 }

// NewView makes a View of the objects.
func NewView(objects []obj.Object) *View {
	v := &View{
		volumes:    map[string]*corev1.PersistentVolume{},
		claims:     map[obj.Key]*corev1.PersistentVolumeClaim{},
		namespaces: map[string]bool{},
		classes:    map[string]*storagev1.StorageClass{},
		csiNodes:   map[string]*storagev1.CSINode{},
		pods:       map[obj.Key][]*corev1.Pod{},
		attached:   map[string][]*storagev1.VolumeAttachment{},
		naming:     map[string][]*corev1.PersistentVolumeClaim{},
	}
	var classes []*storagev1.StorageClass
	for _, object := range objects {
		switch o := object.(type) {
		case *corev1.PersistentVolume:
			v.Volumes, v.volumes[o.Name] = append(v.Volumes, o), o
		case *corev1.PersistentVolumeClaim:
			v.Claims, v.claims[obj.KeyOf(o)] = append(v.Claims, o), o
			v.namespaces[o.Namespace] = true
		case *storagev1.StorageClass:
			classes, v.classes[o.Name] = append(classes, o), o
		case *corev1.Pod:
			v.addPod(o)
		case *storagev1.VolumeAttachment:
			if volume := o.Spec.Source.PersistentVolumeName; volume != nil {
				v.attached[*volume] = append(v.attached[*volume], o)
			}
		case *storagev1.CSINode:
			v.csiNodes[o.Name] = o
		case *corev1.Node:
			v.Nodes = append(v.Nodes, o)
		}
	}
	v.byDefault = storageclass.Default(classes)
	v.sort()
	for _, claim := range v.Claims {
		if volume := claim.Spec.VolumeName; volume != "" {
			v.naming[volume] = append(v.naming[volume], claim)
		}
	}
	v.choose()
	return v
}

func (v *View) addPod(pod *corev1.Pod) {
	v.podCount++
	for _, claim := range reclaim.ClaimNames(pod) {
		key := obj.ClaimKey(pod.Namespace, claim)
		v.pods[key] = append(v.pods[key], pod)
	}
}

func (v *View) sort() {
	slices.SortFunc(v.Volumes, ByName)
	slices.SortFunc(v.Claims, ByName)
	slices.SortFunc(v.Nodes, ByName)
	for _, attachments := range v.attached {
		slices.SortFunc(attachments, ByName)
	}
	for _, pods := range v.pods {
		slices.SortFunc(pods, ByName)
	}
}

// ByName orders objects by namespace and name.
func ByName[T metav1.Object](a, b T) int {
	return cmp.Or(cmp.Compare(a.GetNamespace(), b.GetNamespace()), cmp.Compare(a.GetName(), b.GetName()))
}

// choose fills the index.
func (v *View) choose() {
	v.index.Load(v.Volumes...)
	for _, claim := range v.Claims {
		v.index.SetClaim(claim)
	}
}

// Volume looks up a volume. That one is absent is proof, unless there is none at all.
func (v *View) Volume(name string) (*corev1.PersistentVolume, decision.Source) {
	volume, found := v.volumes[name]
	return volume, source(found, len(v.volumes) > 0)
}

// Claim looks up a claim. That one is absent is proof, unless there is none in its namespace: then the objects may be
// those of other namespaces only.
func (v *View) Claim(namespace, name string) (*corev1.PersistentVolumeClaim, decision.Source) {
	claim, found := v.claims[obj.ClaimKey(namespace, name)]
	return claim, source(found, v.namespaces[namespace])
}

func source(found, complete bool) decision.Source {
	switch {
	case found:
		return decision.FromLiveRead
	case complete:
		return decision.AbsentInLiveRead
	}
	return decision.NotInCache
}

// Class looks up a class.
func (v *View) Class(name string) *storagev1.StorageClass { return v.classes[name] }

// CSINode looks up what is known of the drivers on a node; nil if the input does not have it.
func (v *View) CSINode(node string) *storagev1.CSINode { return v.csiNodes[node] }

// CSIDriver returns nil: a dump has no drivers, so that free storage is not counted (S5).
func (v *View) CSIDriver(string) *storagev1.CSIDriver { return nil }

// CSIStorageCapacities returns none.
func (v *View) CSIStorageCapacities(string) []*storagev1.CSIStorageCapacity { return nil }

// Index returns the index of the volumes.
func (v *View) Index() *index.Index { return &v.index }

// DefaultClass returns the default class (C2).
func (v *View) DefaultClass() *storagev1.StorageClass { return v.byDefault }

// PodsOf returns the pods that name the claim.
func (v *View) PodsOf(namespace, claim string) ([]*corev1.Pod, decision.Source) {
	return v.pods[obj.ClaimKey(namespace, claim)], source(v.podCount > 0, false)
}

// UsersOf returns the names of pods that use the claim.
func (v *View) UsersOf(claim *corev1.PersistentVolumeClaim, atMost int) (names []string, source decision.Source) {
	pods, source := v.PodsOf(claim.Namespace, claim.Name)
	return decision.UsersOf(pods, claim, atMost), source
}

// UnscheduledPods returns the names of the first pods that name the claim and are still to be scheduled.
func (v *View) UnscheduledPods(namespace, claim string, atMost int) (names []string, count int) {
	return decision.Unscheduled(v.pods[obj.ClaimKey(namespace, claim)], atMost)
}

// RecyclingBlockedBy returns the names of the first pods that name the claim and keep its volume from being recycled.
func (v *View) RecyclingBlockedBy(namespace, claim string, again *corev1.PersistentVolumeClaim, atMost int) (names []string, count int, source decision.Source) {
	pods, source := v.PodsOf(namespace, claim)
	names, count = decision.RecyclingBlockedBy(pods, again, atMost)
	return names, count, source
}

// AttachmentsOf returns the attachments that name the volume. If there is none, the dump may lack them.
func (v *View) AttachmentsOf(volume string) ([]*storagev1.VolumeAttachment, decision.Source) {
	return v.attached[volume], source(len(v.attached[volume]) > 0, false)
}

// Find returns the best volume for the claim.
func (v *View) Find(claim *corev1.PersistentVolumeClaim) (match.Match, error) {
	return v.index.Find(claim, v.Terms(claim))
}

// Summary counts why no volume fits the claim.
func (v *View) Summary(claim *corev1.PersistentVolumeClaim) (match.Summary, error) {
	return v.index.Summary(claim, v.Terms(claim))
}

// Terms returns the terms that the claim is matched on.
func (v *View) Terms(claim *corev1.PersistentVolumeClaim) match.Terms {
	return match.Terms{Class: v.Class(storageclass.OfClaim(claim))}
}

// Parsed returns nil: a dump is looked at once.
func (v *View) Parsed(*corev1.PersistentVolumeClaim) *match.Parsed { return nil }

// AbsentAsOf returns "": nothing is read.
func (v *View) AbsentAsOf(obj.Key) string { return "" }

// Owners returns the claims that are Bound to the volume.
func (v *View) Owners(volume string) []obj.Key { return v.index.Owners(volume) }

// Naming returns the claims that name the volume, in order.
func (v *View) Naming(volume string) []*corev1.PersistentVolumeClaim { return v.naming[volume] }

// Claimant returns the claim that names the volume and has the UID in its claimRef.
func (v *View) Claimant(volume *corev1.PersistentVolume) obj.Key {
	for _, claim := range v.naming[volume.Name] {
		if phase.Claims(claim, volume) {
			return obj.KeyOf(claim)
		}
	}
	return obj.Key{}
}

// ListedOwners returns the same as Owners: a dump that has claims is taken for one that has all.
func (v *View) ListedOwners(volume string) (owners []*corev1.PersistentVolumeClaim, from decision.Source) {
	for _, key := range v.Owners(volume) {
		owners = append(owners, v.claims[key])
	}
	return owners, source(len(v.claims) > 0, false)
}

// Former returns nil: a dump has nothing of what was before.
func (v *View) Former(string) *corev1.PersistentVolume { return nil }

// MayStandFor returns "": a dump has nothing of what provisioners have made.
func (v *View) MayStandFor(obj.Key, types.UID) string { return "" }

// FormerClaims returns nil, as Former does.
func (v *View) FormerClaims(string) []*corev1.ObjectReference { return nil }

// Answered returns nil: no hook was run.
func (v *View) Answered(decision.ActionKind, types.UID) []decision.Answer { return nil }

// Waiting returns nil. To look for the waiting claim of each volume would cost volumes times claims, and a claim that
// waits for any volume finds it by itself.
func (v *View) Waiting(*corev1.PersistentVolume) *corev1.PersistentVolumeClaim { return nil }
