package scheduling

import (
	"cmp"
	"slices"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/pvbind/pvbind/binding/index"
	"github.com/pvbind/pvbind/binding/internal/oneline"
	"github.com/pvbind/pvbind/binding/match"
	"github.com/pvbind/pvbind/binding/obj"
	"github.com/pvbind/pvbind/phase"
	"github.com/pvbind/pvbind/reclaim"
	"github.com/pvbind/pvbind/storageclass"
)

// AbsentError is a claim that a pod names and that is not known. The claim of a generic ephemeral volume comes
// shortly after its pod (S1).
type AbsentError struct{ Pod, Claim obj.Key }

func (e *AbsentError) Error() string {
	return e.Pod.String() + ": the claim " + e.Claim.String() + " does not exist"
}

// podClaims are the claims of a pod, looked up once for all nodes.
type podClaims struct {
	pod     obj.Key
	refused []Reason
	bound   []boundClaim
	unbound []*unboundClaim
}

// boundClaim is a claim whose volume must be usable on the node (S3).
type boundClaim struct {
	volume *corev1.PersistentVolume // nil if it does not exist
	reason Reason                   // if the node will not do
}

// unboundClaim is a claim that a volume is to be found or provisioned for (S4).
type unboundClaim struct {
	*index.Query
	criteria match.Criteria
	class    *storagev1.StorageClass
	// selected is the node that its volume is being provisioned for, if hasSelected is set.
	selected    string
	hasSelected bool
	// promised is the volume that it gets by the plan of another pod.
	promised string
	// candidates are kept from node to node, to be filled again.
	candidates []index.Choice
	// pools is where its class provisions from; nil if free storage is not counted.
	pools *pools
}

// readClaims reads the claims of the request's pod.
func readClaims(request Request) (*podClaims, error) {
	claims, err := claimsNamedBy(request.Pod, request.View)
	if err != nil {
		return nil, err
	}
	c := &podClaims{pod: obj.KeyOfPod(request.Pod)}
	for _, claim := range claims {
		if err := c.add(claim, request); err != nil {
			return nil, err
		}
	}
	return c, nil
}

// claimsNamedBy looks up the claims that a pod names, each once, in the order of their names.
func claimsNamedBy(pod *corev1.Pod, view ObjectView) ([]*corev1.PersistentVolumeClaim, error) {
	var claims []*corev1.PersistentVolumeClaim
	for i := range pod.Spec.Volumes {
		volume := &pod.Spec.Volumes[i]
		name := reclaim.ClaimName(pod, volume)
		if name == "" {
			continue
		}
		claim, _ := view.Claim(pod.Namespace, name)
		if claim == nil {
			return nil, &AbsentError{obj.KeyOfPod(pod), obj.ClaimKey(pod.Namespace, name)}
		}
		if volume.PersistentVolumeClaim == nil && !metav1.IsControlledBy(claim, pod) {
			return nil, &obj.InvalidError{Object: obj.KeyOf(claim).String(), Field: "metadata.ownerReferences", Problem: "does not name " + obj.KeyOfPod(pod).String() + " as its controller"}
		}
		claims = append(claims, claim)
	}
	slices.SortFunc(claims, func(a, b *corev1.PersistentVolumeClaim) int { return cmp.Compare(a.Name, b.Name) })
	return slices.CompactFunc(claims, func(a, b *corev1.PersistentVolumeClaim) bool { return a.Name == b.Name }), nil
}

func (c *podClaims) add(claim *corev1.PersistentVolumeClaim, request Request) error {
	reason, err := refusal(claim, request.View)
	switch {
	case err != nil:
		return err
	case reason.Cause != "":
		c.refused = append(c.refused, reason)
		return nil
	case fullyBound(claim):
		c.bound = append(c.bound, newBoundClaim(claim, request.View))
		return nil
	}
	unbound, err := newUnboundClaim(claim, request)
	if err != nil {
		return err
	}
	c.unbound = append(c.unbound, unbound)
	return nil
}

// refusal returns why the pod must wait for the claim whatever the node; its Cause is "" if it need not. A claim has to be
// usable, and bound unless it waits for the node (S1, S2).
func refusal(claim *corev1.PersistentVolumeClaim, view View) (Reason, error) {
	if reason := unusable(claim); reason.Cause != "" || fullyBound(claim) {
		return reason, nil
	}
	name := storageclass.OfClaim(claim)
	class := view.Class(name)
	waits, err := storageclass.WaitsForFirstConsumer(class)
	reason := Reason{CauseClaimUnbound, obj.KeyOf(claim), claim.Spec.VolumeName, "the claim is to be bound without regard to the node, and is not yet bound"}
	switch {
	case err != nil:
		return Reason{}, err
	case claim.Spec.VolumeName != "":
		reason.Detail = "the claim names a volume and is not yet bound to it"
	case waits:
		return Reason{}, nil
	case class == nil && name != "":
		reason.Detail = "the claim is not bound, and its class " + name + " does not exist"
	}
	return reason, nil
}

// unusable returns why no pod can use the claim; its Cause is "" if one can (S1).
func unusable(claim *corev1.PersistentVolumeClaim) Reason {
	switch {
	case claim.Status.Phase == corev1.ClaimLost:
		return Reason{CauseClaimLost, obj.KeyOf(claim), claim.Spec.VolumeName, "the claim has lost its volume"}
	case claim.DeletionTimestamp != nil:
		return Reason{CauseClaimDeleting, obj.KeyOf(claim), claim.Spec.VolumeName, "the claim is being deleted"}
	}
	return Reason{}
}

// fullyBound reports whether the scheduler takes the claim for bound (S2).
func fullyBound(claim *corev1.PersistentVolumeClaim) bool {
	return claim.Spec.VolumeName != "" && phase.BindCompleted(claim)
}

func newBoundClaim(claim *corev1.PersistentVolumeClaim, view ObjectView) boundClaim {
	volume, _ := view.Volume(claim.Spec.VolumeName)
	reason := Reason{Claim: obj.KeyOf(claim), Volume: claim.Spec.VolumeName}
	if volume == nil {
		reason.Cause, reason.Detail = CauseVolumeAbsent, "the volume that the claim is bound to does not exist"
	} else {
		reason.Cause = CauseVolumeElsewhere
		if required := match.RequiredAffinity(volume); required != nil {
			reason.Detail = "the volume is for nodes with " + oneline.OrNone(match.AffinityText(required))
		}
	}
	return boundClaim{volume, reason}
}

func newUnboundClaim(claim *corev1.PersistentVolumeClaim, request Request) (*unboundClaim, error) {
	class := request.View.Class(storageclass.OfClaim(claim))
	criteria, err := match.NewCriteria(claim, match.Terms{Class: class})
	if err != nil {
		return nil, err
	}
	c := &unboundClaim{criteria: criteria, class: class, pools: poolsOf(claim, class, request.View)}
	c.selected, c.hasSelected = claim.Annotations[storageclass.SelectedNodeAnnotation]
	if !c.hasSelected {
		c.promised, c.selected = request.Assumptions.promised(claim)
		c.hasSelected = c.selected != ""
	}
	return c, nil
}
