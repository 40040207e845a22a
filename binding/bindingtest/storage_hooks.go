package bindingtest

import (
	"context"

	corev1 "k8s.io/api/core/v1"

	"github.com/pvbind/pvbind/binding"
)

// Provision makes the storage for a claim, of the size asked for, on a path of its own. On a request for a node
// it is on that node alone. Storage that was made for the claim before is returned as it is.
func (s *Storage) Provision(ctx context.Context, request binding.ProvisionRequest) (*corev1.PersistentVolume, error) {
	name := request.Volume.Name
	call := &StorageCall{Verb: StorageProvision, Volume: name, Claim: request.Claim.UID, Node: request.Node}
	var made Kept
	err := s.perform(ctx, call, func() StorageEffect {
		kept, there := s.kept[name]
		if !there {
			kept = Kept{name, request.Claim.UID, request.Node, request.Volume.Spec.Capacity[corev1.ResourceStorage], Blank}
			s.put(kept)
		}
		made = kept
		if there {
			return StorageUnchanged
		}
		return StorageMade
	})
	if err != nil {
		return nil, err
	}
	volume := request.Volume.DeepCopy()
	volume.Spec.Capacity = corev1.ResourceList{corev1.ResourceStorage: made.Size}
	volume.Spec.HostPath = &corev1.HostPathVolumeSource{Path: "/storage/" + name}
	volume.Spec.NodeAffinity = onNode(made.Node)
	return volume, nil
}

func onNode(node string) *corev1.VolumeNodeAffinity {
	if node == "" {
		return nil
	}
	there := corev1.NodeSelectorRequirement{Key: corev1.LabelHostname, Operator: corev1.NodeSelectorOpIn, Values: []string{node}}
	return &corev1.VolumeNodeAffinity{Required: &corev1.NodeSelector{
		NodeSelectorTerms: []corev1.NodeSelectorTerm{{MatchExpressions: []corev1.NodeSelectorRequirement{there}}},
	}}
}

// Delete deletes the storage of a volume. That there is none is success.
func (s *Storage) Delete(ctx context.Context, volume *corev1.PersistentVolume) error {
	call := &StorageCall{Verb: StorageDelete, Volume: volume.Name, Claim: claimUID(volume)}
	return s.perform(ctx, call, func() StorageEffect {
		kept, there := s.kept[volume.Name]
		if !there {
			s.judgeRepetition(volume)
			return StorageUnchanged
		}
		s.judgeLoss("deleted", kept, volume)
		delete(s.kept, volume.Name)
		return StorageDeleted
	})
}

// Recycle removes the data from the storage of a volume. That there is none is success.
func (s *Storage) Recycle(ctx context.Context, volume *corev1.PersistentVolume) error {
	call := &StorageCall{Verb: StorageRecycle, Volume: volume.Name, Claim: claimUID(volume)}
	return s.perform(ctx, call, func() StorageEffect {
		kept, there := s.kept[volume.Name]
		if !there {
			return StorageUnchanged
		}
		s.judgeLoss("scrubbed", kept, volume)
		kept.Content = Scrubbed
		s.kept[volume.Name] = kept
		return StorageScrubbed
	})
}
