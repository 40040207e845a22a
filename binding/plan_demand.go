package binding

import (
	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"

	"github.com/pvbind/pvbind/binding/index"
	"github.com/pvbind/pvbind/binding/internal/oneline"
	"github.com/pvbind/pvbind/binding/match"
	"github.com/pvbind/pvbind/binding/obj"
	"github.com/pvbind/pvbind/storageclass"
)

// demand is what a pod asks of every node, looked up once: S1 and S2, and what S3 to S6 need.
type demand struct {
	pod     obj.Key
	refused []PodReason
	bound   []boundClaim
	open    []*openClaim
}

// boundClaim is a claim whose volume must be usable on the node (S3).
type boundClaim struct {
	claim  *corev1.PersistentVolumeClaim
	volume *corev1.PersistentVolume // nil if it does not exist
	why    PodReason                // if the node will not do
}

// openClaim is a claim that a volume is to be found or made for (S4).
type openClaim struct {
	*index.Query
	criteria match.Criteria
	class    *storagev1.StorageClass
	// selected is the node that its volume is being provisioned for, if selecting is set.
	selected  string
	selecting bool
	// promised is the volume that it gets by the plan of another pod.
	promised string
	// choices are kept from node to node, to be filled again.
	choices []index.Choice
	// pools is where its class provisions from; nil if free storage is not counted.
	pools *pools
}

func demandOf(request PodRequest) (*demand, error) {
	claims, err := claimsNamedBy(request.Pod, request.View)
	if err != nil {
		return nil, err
	}
	d := &demand{pod: obj.KeyOfPod(request.Pod)}
	for _, claim := range claims {
		if err := d.add(claim, request); err != nil {
			return nil, err
		}
	}
	return d, nil
}

func (d *demand) add(claim *corev1.PersistentVolumeClaim, request PodRequest) error {
	if reason, refused := refusedClaim(claim); refused {
		d.refused = append(d.refused, reason)
		return nil
	}
	if fullyBound(claim) {
		d.bound = append(d.bound, boundClaimOf(claim, request.View))
		return nil
	}
	reason, refused, err := mustBind(claim, request.View)
	if err != nil {
		return err
	}
	if refused {
		d.refused = append(d.refused, reason)
		return nil
	}
	open, err := openClaimOf(claim, request)
	if err != nil {
		return err
	}
	d.open = append(d.open, open)
	return nil
}

func boundClaimOf(claim *corev1.PersistentVolumeClaim, view PairView) boundClaim {
	volume, _ := view.Volume(claim.Spec.VolumeName)
	why := PodReason{Claim: obj.KeyOf(claim), Volume: claim.Spec.VolumeName}
	if volume == nil {
		why.Cause, why.Detail = CauseVolumeAbsent, "the volume that the claim is bound to does not exist"
	} else {
		why.Cause = CauseVolumeElsewhere
		if required := match.RequiredAffinity(volume); required != nil {
			why.Detail = "the volume is for nodes with " + oneline.OrNone(match.AffinityText(required))
		}
	}
	return boundClaim{claim, volume, why}
}

func openClaimOf(claim *corev1.PersistentVolumeClaim, request PodRequest) (*openClaim, error) {
	class := request.View.Class(storageclass.OfClaim(claim))
	c, err := match.NewCriteria(claim, match.Terms{Class: class})
	if err != nil {
		return nil, err
	}
	open := &openClaim{criteria: c, class: class, pools: poolsOf(claim, class, request.View)}
	open.selected, open.selecting = claim.Annotations[storageclass.SelectedNodeAnnotation]
	if !open.selecting {
		open.promised, open.selected = request.Assumed.promised(claim)
		open.selecting = open.selected != ""
	}
	return open, nil
}
