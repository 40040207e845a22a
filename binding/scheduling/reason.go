package scheduling

import (
	"slices"

	"github.com/pvbind/pvbind/binding/internal/oneline"
	"github.com/pvbind/pvbind/binding/obj"
)

// Cause is why a pod cannot have the volume of one of its claims.
type Cause string

const (
	// CauseClaimAbsent means that the pod names a claim that does not exist.
	CauseClaimAbsent Cause = "ClaimAbsent"
	// CauseClaimLost means that the claim was bound to a volume that is gone (S1).
	CauseClaimLost Cause = "ClaimLost"
	// CauseClaimDeleting means that the claim is being deleted (S1).
	CauseClaimDeleting Cause = "ClaimDeleting"
	// CauseClaimNotOwned means that the claim has the name of a generic ephemeral volume's, but is not the pod's (S1).
	CauseClaimNotOwned Cause = "ClaimNotOwned"
	// CauseClaimUnbound means that the claim must be bound before the pod is scheduled or started (S2).
	CauseClaimUnbound Cause = "ClaimUnbound"

	// CauseVolumeAbsent means that the claim is bound to a volume that does not exist (S3).
	CauseVolumeAbsent Cause = "VolumeAbsent"
	// CauseVolumeElsewhere means that the claim's volume cannot be used on the node (S3).
	CauseVolumeElsewhere Cause = "VolumeElsewhere"
	// CauseProvisionedElsewhere means that the claim's volume is being provisioned for another node (S4).
	CauseProvisionedElsewhere Cause = "ProvisionedElsewhere"
	// CausePreBoundElsewhere means that a volume is pre-bound to the claim and cannot be used on the node (M13).
	CausePreBoundElsewhere Cause = "PreBoundElsewhere"
	// CauseNoVolume means that no volume fits the claim on the node, and its class provisions none (S4).
	CauseNoVolume Cause = "NoVolume"
	// CauseContended means that volumes fit the claim, but the pod's other claims need them (S6).
	CauseContended Cause = "Contended"
	// CauseTopology means that no volume fits, and the class does not allow one to be provisioned for the node (S5).
	CauseTopology Cause = "Topology"
	// CauseStorage means that no volume fits, and the node has no storage left for a new one of this size (S5).
	CauseStorage Cause = "Storage"

	// CauseVolumeTaken means that the volume is not the claim's, or not any more.
	CauseVolumeTaken Cause = "VolumeTaken"
	// CauseVolumeMode means that a container mounts the volume, which is a block device, or the reverse.
	CauseVolumeMode Cause = "VolumeMode"
	// CauseDeselected means that the claim's selected-node was removed, as is done when provisioning fails, or the claim
	// was changed before it could be set.
	CauseDeselected Cause = "Deselected"
	// CauseBoundElsewhere means that the claim was bound to another volume than the plan's.
	CauseBoundElsewhere Cause = "BoundElsewhere"
)

// NodeReason is kube-scheduler's text for why a pod cannot have its volumes on a node. Others compare the texts: they are
// those of kube-scheduler 1.33 and later, letter for letter (S9).
type NodeReason string

const (
	// NodeAffinityConflict means that a bound volume cannot be used on the node. Until 1.32 the text was "node(s) had
	// volume node affinity conflict".
	NodeAffinityConflict NodeReason = "node(s) didn't match PersistentVolume's node affinity"
	// NodeNoVolume means that there is nothing to bind, and that nothing can be provisioned.
	NodeNoVolume NodeReason = "node(s) didn't find available persistent volumes to bind"
	// NodeNoStorage means that there is not enough free storage to provision from.
	NodeNoStorage NodeReason = "node(s) did not have enough free storage"
	// NodeVolumeAbsent means that a bound volume does not exist.
	NodeVolumeAbsent NodeReason = "node(s) unavailable due to one or more pvc(s) bound to non-existent pv(s)"
)

// UnboundImmediate is kube-scheduler's text for a pod that waits for its claims, whatever the node. Plans.String has it where
// a reason has CauseClaimUnbound (S2).
const UnboundImmediate = "pod has unbound immediate PersistentVolumeClaims"

// nodeReasons are in the order in which kube-scheduler lists them for one node.
var nodeReasons = [...]NodeReason{NodeAffinityConflict, NodeNoVolume, NodeNoStorage, NodeVolumeAbsent}

// nodeReasonSet is a set of them, by their places.
type nodeReasonSet uint8

// add adds what kube-scheduler says of a cause; nothing for none.
func (s *nodeReasonSet) add(cause Cause) {
	if at := slices.Index(nodeReasons[:], cause.NodeReason()); at >= 0 {
		*s |= 1 << at
	}
}

func (s nodeReasonSet) list() (reasons []NodeReason) {
	for at, reason := range nodeReasons {
		if s>>at&1 == 1 {
			reasons = append(reasons, reason)
		}
	}
	return reasons
}

// NodeReason returns the cause in kube-scheduler's words; "" for one that does not depend on the node (S9).
func (c Cause) NodeReason() NodeReason {
	switch c {
	case CauseVolumeElsewhere:
		return NodeAffinityConflict
	case CauseProvisionedElsewhere, CausePreBoundElsewhere, CauseNoVolume, CauseContended, CauseTopology:
		return NodeNoVolume
	case CauseStorage:
		return NodeNoStorage
	case CauseVolumeAbsent:
		return NodeVolumeAbsent
	}
	return ""
}

// Reason is one reason why a pod cannot have its volumes.
type Reason struct {
	Cause Cause
	// Claim is the claim that it is about.
	Claim obj.Key
	// Volume is the name of the volume that it is about; "" if it is about none in particular.
	Volume string
	// Detail says more, for people.
	Detail string
}

// String returns the reason in one line: "pvc/default/data, pv/a: VolumeElsewhere: …".
func (r Reason) String() string {
	about := r.Claim.String()
	if r.Volume != "" {
		about += ", " + obj.VolumeKey(r.Volume).String()
	}
	return oneline.Text(about+": "+string(r.Cause)+": "+r.Detail, maxReason)
}

// maxReason is what a reason may have of an event's message, in bytes.
const maxReason = 800
