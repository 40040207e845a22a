package phase

import corev1 "k8s.io/api/core/v1"

// Link is what a volume's claimRef says about one claim.
type Link string

// The five links, rules L1 to L5.
const (
	// Unclaimed: no claimRef. The volume is free.
	Unclaimed Link = "Unclaimed"
	// Reserved: names this claim, without a UID. A person set the volume aside
	// for any claim of that name.
	Reserved Link = "Reserved"
	// Held: names this claim and its UID. The volume is bound, or being bound,
	// to exactly this claim.
	Held Link = "Held"
	// Gone: names this claim, with another UID. The claim that the volume served
	// was deleted, and this is a new one of the same name.
	Gone Link = "Gone"
	// Other: names another claim.
	Other Link = "Other"
)

// LinkOf returns what the volume's claimRef says about the claim. It looks at no
// phase and no annotation, and does not allocate.
func LinkOf(volume *corev1.PersistentVolume, claim *corev1.PersistentVolumeClaim) Link {
	ref := volume.Spec.ClaimRef
	switch {
	case ref == nil:
		return Unclaimed
	case ref.Namespace != claim.Namespace || ref.Name != claim.Name:
		return Other
	case ref.UID == "":
		return Reserved
	case ref.UID == claim.UID:
		return Held
	}
	return Gone
}
