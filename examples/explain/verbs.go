package main

import (
	corev1 "k8s.io/api/core/v1"
)

// What a person can do with a volume, in the names of the verbs of package reclaim (R7).

// releasedVerbs are for a volume whose claim is gone.
func releasedVerbs(volume *corev1.PersistentVolume) []string {
	if volume.Spec.PersistentVolumeReclaimPolicy != corev1.PersistentVolumeReclaimRetain {
		return []string{"Keep: switch it to Retain, if its data is still wanted and still there"}
	}
	return []string{
		"Open: let any claim that fits have it, with the data on it",
		"Reserve: set it aside for one claim, of its namespace or another",
		"Move: hand it on to another claim step by step",
		"delete it: the storage stays, for the policy is Retain",
	}
}

// deletingVerbs are for a volume that is being deleted: nothing takes that back.
func deletingVerbs(volume *corev1.PersistentVolume) []string {
	if volume.Spec.PersistentVolumeReclaimPolicy == corev1.PersistentVolumeReclaimDelete {
		return []string{"Keep: switch it to Retain, so that its storage outlives it"}
	}
	return nil
}
