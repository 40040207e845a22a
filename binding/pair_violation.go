package binding

// ViolationKind is in which way a pair is not healthy.
type ViolationKind string

const (
	// PairHalfBound (B5): the bind was begun, and some of its four writes are missing, as after a crash.
	PairHalfBound ViolationKind = "HalfBound"
	// PairUnbound (C1, C7): the two are meant for each other and fit, and the bind has not begun.
	PairUnbound ViolationKind = "Unbound"
	// PairMisfit (C7, M12, V2): the two are meant for each other, and do not fit.
	PairMisfit ViolationKind = "Misfit"
	// PairLostThoughThere (X4): the claim is Lost, and its volume is there.
	PairLostThoughThere ViolationKind = "LostThoughThere"
	// PairClaimRefDropped (M2): the claim is bound, and somebody took the volume's claimRef away.
	PairClaimRefDropped ViolationKind = "ClaimRefDropped"
	// PairContended (M2, C11): the same, and other claims are bound to the volume as well.
	PairContended ViolationKind = "VolumeContended"
	// PairUIDCleared (C11): the claim was bound, and the volume is merely reserved for its name.
	PairUIDCleared ViolationKind = "UIDCleared"
	// PairUIDDiffers (L4): the claim names the volume, whose claimRef has the UID of another claim of that name, as
	// after both were restored from a backup.
	PairUIDDiffers ViolationKind = "UIDDiffers"
	// PairVolumeTaken (C9, C10): the claim names the volume, which is another claim's.
	PairVolumeTaken ViolationKind = "VolumeTaken"
	// PairVolumeAbsent (C6, C10): the claim names a volume that does not exist, or was bound and names none.
	PairVolumeAbsent ViolationKind = "VolumeAbsent"
	// PairSurplus (V2): the volume is held by the claim, which has another.
	PairSurplus ViolationKind = "Surplus"
	// PairWrongPhase (V1, V3): nobody has the volume, and its phase does not say so.
	PairWrongPhase ViolationKind = "WrongPhase"
	// PairClaimTerminating (F2) and PairVolumeTerminating (F3): it is being deleted, and something keeps it.
	PairClaimTerminating  ViolationKind = "ClaimTerminating"
	PairVolumeTerminating ViolationKind = "VolumeTerminating"
	// PairUnrelated: neither names the other.
	PairUnrelated ViolationKind = "Unrelated"
)
