package binding

import (
	"github.com/pvbind/pvbind/binding/internal/oneline"
	"github.com/pvbind/pvbind/binding/obj"
)

// Cause is why a pod cannot have the volume of one of its claims.
type Cause string

const (
	// CauseClaimAbsent: the pod names a claim that does not exist.
	CauseClaimAbsent Cause = "ClaimAbsent"
	// CauseClaimLost (S1): the claim was bound to a volume that is gone.
	CauseClaimLost Cause = "ClaimLost"
	// CauseClaimDeleting (S1): the claim is being deleted.
	CauseClaimDeleting Cause = "ClaimDeleting"
	// CauseClaimNotOwned (S1): the claim has the name of a generic ephemeral volume's, but is not the pod's.
	CauseClaimNotOwned Cause = "ClaimNotOwned"
	// CauseClaimUnbound (S2): the claim must be bound before the pod is placed or started.
	CauseClaimUnbound Cause = "ClaimUnbound"

	// CauseVolumeAbsent (S3): the claim is bound to a volume that does not exist.
	CauseVolumeAbsent Cause = "VolumeAbsent"
	// CauseVolumeElsewhere (S3): the claim's volume cannot be used on the node.
	CauseVolumeElsewhere Cause = "VolumeElsewhere"
	// CauseProvisionedElsewhere (S4): the claim's volume is being provisioned for another node.
	CauseProvisionedElsewhere Cause = "ProvisionedElsewhere"
	// CauseReservedElsewhere (M13): a volume is set aside for the claim and cannot be used on the node.
	CauseReservedElsewhere Cause = "ReservedElsewhere"
	// CauseNoVolume (S4): no volume fits the claim on the node, and its class provisions none.
	CauseNoVolume Cause = "NoVolume"
	// CauseContended (S6): volumes fit the claim, but the pod's other claims need them.
	CauseContended Cause = "Contended"
	// CauseTopology (S5): no volume fits, and the class does not allow one to be made for the node.
	CauseTopology Cause = "Topology"
	// CauseStorage (S5): no volume fits, and the node has no storage left for a new one of this size.
	CauseStorage Cause = "Storage"

	// CauseVolumeTaken: the volume is not the claim's, or not any more.
	CauseVolumeTaken Cause = "VolumeTaken"
	// CauseVolumeMode: a container wants the volume as a file system and it is a block device, or the reverse.
	CauseVolumeMode Cause = "VolumeMode"
	// CauseDeselected: the claim's selected-node was removed, as is done when provisioning fails, or the claim
	// was changed before it could be set.
	CauseDeselected Cause = "Deselected"
	// CauseBoundElsewhere: the claim was bound to another volume than the plan's.
	CauseBoundElsewhere Cause = "BoundElsewhere"
)

// NodeReason is what kube-scheduler says of a node that a pod's volumes cannot be had on (S9). Others compare
// the texts: they are those of kube-scheduler 1.33 and later, letter for letter.
type NodeReason string

const (
	// NodeAffinityConflict: a bound volume cannot be used on the node. Until 1.32 the text was "node(s) had
	// volume node affinity conflict".
	NodeAffinityConflict NodeReason = "node(s) didn't match PersistentVolume's node affinity"
	// NodeNoVolume: nothing to bind and nothing to be provisioned.
	NodeNoVolume NodeReason = "node(s) didn't find available persistent volumes to bind"
	// NodeNoStorage: not enough free storage to provision from.
	NodeNoStorage NodeReason = "node(s) did not have enough free storage"
	// NodeVolumeAbsent: a bound volume does not exist.
	NodeVolumeAbsent NodeReason = "node(s) unavailable due to one or more pvc(s) bound to non-existent pv(s)"
)

// UnboundImmediate is what kube-scheduler says of a pod that waits for its claims, whatever the node (S2). PodPlans.String
// says so where a reason has CauseClaimUnbound.
const UnboundImmediate = "pod has unbound immediate PersistentVolumeClaims"

// nodeReasons are in the order in which kube-scheduler lists them for one node.
var nodeReasons = [...]NodeReason{NodeAffinityConflict, NodeNoVolume, NodeNoStorage, NodeVolumeAbsent}

// NodeReason is the cause in kube-scheduler's words (S9); "" for one that does not depend on the node.
func (c Cause) NodeReason() NodeReason {
	switch c {
	case CauseVolumeElsewhere:
		return NodeAffinityConflict
	case CauseProvisionedElsewhere, CauseReservedElsewhere, CauseNoVolume, CauseContended, CauseTopology:
		return NodeNoVolume
	case CauseStorage:
		return NodeNoStorage
	case CauseVolumeAbsent:
		return NodeVolumeAbsent
	}
	return ""
}

// PodReason is one reason why a pod cannot have its volumes.
type PodReason struct {
	Cause Cause
	// Claim is the claim that it is about.
	Claim obj.Key
	// Volume is the name of the volume that it is about; "" if it is about none in particular.
	Volume string
	// Detail says more, for people.
	Detail string
}

// String is "pvc/default/data, pv/a: VolumeElsewhere: …", in one line.
func (r PodReason) String() string {
	about := r.Claim.String()
	if r.Volume != "" {
		about += ", " + obj.VolumeKey(r.Volume).String()
	}
	return oneline.Text(about+": "+string(r.Cause)+": "+r.Detail, maxReason)
}

// maxReason is what a reason may have of an event's message, in bytes.
const maxReason = 800
