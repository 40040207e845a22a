package binding

// ClaimState is how a claim stands: bound, or waiting for what.
type ClaimState string

const (
	// ClaimBound (C11): it has its volume, and nothing is to be done.
	ClaimBound ClaimState = "Bound"
	// ClaimBinding (C1, C7, C8, C11): it has found its volume, or has it again; some of the four writes are to be made.
	ClaimBinding ClaimState = "Binding"
	// ClaimUnmatched (C5): no volume fits, and it names no class that could make one.
	ClaimUnmatched ClaimState = "NoVolumeFits"
	// ClaimAwaitsConsumer (C3): its class waits for a pod that uses it, and there is none.
	ClaimAwaitsConsumer ClaimState = "AwaitsConsumer"
	// ClaimAwaitsScheduling (C3): its class waits for one of its pods to get a node.
	ClaimAwaitsScheduling ClaimState = "AwaitsScheduling"
	// ClaimAwaitsProvisioner (C4, P2, P3): no volume fits, and a provisioner is to make one.
	ClaimAwaitsProvisioner ClaimState = "AwaitsProvisioner"
	// ClaimUnprovisionable (P1): no volume fits, and nobody makes volumes for its class.
	ClaimUnprovisionable ClaimState = "NoProvisioner"
	// ClaimAwaitsVolume (C6): the volume that it names does not exist.
	ClaimAwaitsVolume ClaimState = "AwaitsVolume"
	// ClaimMismatched (C7): the volume that it names does not fit it.
	ClaimMismatched ClaimState = "VolumeMismatch"
	// ClaimRefused (C9): the volume that it names is another claim's.
	ClaimRefused ClaimState = "VolumeTaken"
	// ClaimContended (C11): it is bound to a volume that has lost its claimRef, and so are others.
	ClaimContended ClaimState = "VolumeContended"
	// ClaimLost (C10): it was bound, and its volume is gone or another claim's.
	ClaimLost ClaimState = "Lost"
	// ClaimTerminating (C12, F2): it is being deleted.
	ClaimTerminating ClaimState = "Terminating"
)

// searched reports whether volumes were searched for one that fits, and none was found.
func (s ClaimState) searched() bool {
	switch s {
	case ClaimUnmatched, ClaimAwaitsConsumer, ClaimAwaitsScheduling, ClaimAwaitsProvisioner, ClaimUnprovisionable:
		return true
	}
	return false
}
