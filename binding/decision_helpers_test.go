package binding_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/pvbind/pvbind/binding"
	"github.com/pvbind/pvbind/binding/bindingtest"
	"github.com/pvbind/pvbind/binding/obj"
)

// decision is one row of a table: an object, what else is known, and what must follow from it.
type decision struct {
	name   string // begins with the rule
	claim  *corev1.PersistentVolumeClaim
	volume *corev1.PersistentVolume // the object of the decision if there is no claim
	known  binding.Snapshot         // the object itself is added to it
	rules  binding.Rules

	want   string   // "C1 Kind object: every difference that the write makes"
	events []string // "Type Reason object"
	says   []string // each is part of the message of every event, and of the reason
	fails  string   // part of the error; "": none
	retry  binding.Retry
}

func runDecisions(t *testing.T, table []decision) {
	for _, row := range table {
		t.Run(row.name, row.run)
	}
}

func (d decision) run(t *testing.T) {
	d = d.complete()
	before := d.copy()

	action, err := d.decide()

	d.checkAnswer(t, action, err)
	d.checkWrite(t, action)
	d.checkEvents(t, action)
	require.Equal(t, before, d, "X6: the inputs stay as they were")
	d.checkOrder(t, action)
	spoil(action)
	require.Equal(t, before, d, "X6: what is written shares nothing with the inputs")
}

func (d decision) decide() (binding.Action, error) {
	if d.claim != nil {
		return binding.NextForClaim(d.claim, d.known, d.rules)
	}
	return binding.NextForVolume(d.volume, d.known, d.rules)
}

func (d decision) checkAnswer(t *testing.T, action binding.Action, err error) {
	if d.fails != "" {
		require.ErrorContains(t, err, d.fails, "X7")
		assert.False(t, action.Writes(), "nothing is written beside an error")
	} else {
		require.NoError(t, err)
	}
	if d.want != "" || d.fails == "" {
		assert.Equal(t, d.want, d.text(action))
	}
	assert.Equal(t, d.retry, action.Retry, "W6")
	assert.NotContains(t, action.Why, "\n")
	for _, part := range d.says {
		assert.Contains(t, action.Why, part)
	}
}

// text is the action as a row says it.
func (d decision) text(action binding.Action) string {
	text := action.Rule + " " + string(action.Kind)
	if action.Kind == binding.Nothing {
		text += "Nothing"
	}
	if action.Target() != (obj.Key{}) {
		text += " " + action.Target().String()
	}
	if action.Hook != "" {
		text += " by " + action.Hook
	}
	if before, after := d.written(action); after != nil {
		text += ": " + bindingtest.Diff(before, after)
	}
	return text
}

// written is the object that the action changes, as it was and as it is to be.
func (d decision) written(action binding.Action) (before, after obj.Object) {
	switch {
	case !action.Writes() || action.Kind == binding.CreateVolume || action.Kind == binding.DeleteVolume:
	case action.Volume != nil:
		was, _ := d.known.Volume(action.Volume.Name)
		return was, action.Volume
	case action.Claim != nil:
		was, _ := d.known.Claim(action.Claim.Namespace, action.Claim.Name)
		return was, action.Claim
	}
	return nil, nil
}

// checkWrite holds a write to its half of the object (A2) and to the version it was decided on (B5).
func (d decision) checkWrite(t *testing.T, action binding.Action) {
	switch action.Kind {
	case binding.CreateVolume:
		assert.Empty(t, action.Volume.ResourceVersion+string(action.Volume.UID), "A1: the server sets them")
	case binding.DeleteVolume:
		assert.Equal(t, d.volume, action.Volume, "R3: the preconditions are its UID and resourceVersion")
	}
	before, after := d.written(action)
	if after == nil {
		return
	}
	assert.Equal(t, before.GetResourceVersion(), after.GetResourceVersion(), "B5")
	assert.Equal(t, before.GetUID(), after.GetUID(), "B5")
	assert.NotEmpty(t, bindingtest.Diff(before, after), "B5: what is already so is not written")
	for _, part := range strings.Fields(bindingtest.Diff(before, after)) {
		status := strings.HasPrefix(strings.TrimPrefix(part, "-"), "status.")
		wants := action.Kind == binding.UpdateVolumeStatus || action.Kind == binding.UpdateClaimStatus
		if strings.HasPrefix(strings.TrimPrefix(part, "-"), "spec.") || status {
			assert.Equal(t, wants, status, "A2: %s in a %s", part, action.Kind)
		}
	}
}

func (d decision) checkEvents(t *testing.T, action binding.Action) {
	var events []string
	for _, event := range action.Events {
		events = append(events, event.Type+" "+string(event.Reason)+" "+event.On.String())
		assert.NotContains(t, event.Message, "\n", "N: one line")
		assert.LessOrEqual(t, len(event.Message), 1024, "N: bounded")
		assert.NotEmpty(t, event.Message, "N")
		assert.NotEmpty(t, event.UID, "N: an event is about one object, not about a name")
		for _, part := range d.says {
			assert.Contains(t, event.Message, part, "N")
		}
	}
	assert.Equal(t, d.events, events, "N")
}

// checkOrder asks again with every list the other way round: the answer depends on none of their orders.
func (d decision) checkOrder(t *testing.T, action binding.Action) {
	turned := d.copy()
	slices.Reverse(turned.known.Volumes)
	slices.Reverse(turned.known.Claims)
	slices.Reverse(turned.known.Classes)
	slices.Reverse(turned.known.Attachments)
	slices.Reverse(turned.known.Live)
	again, _ := turned.decide()
	assert.Equal(t, action, again, "the same objects in any order, the same answer")
}

// copy is the row with objects of its own.
func (d decision) copy() decision {
	d.claim, d.volume, d.known = d.claim.DeepCopy(), d.volume.DeepCopy(), copyOf(d.known)
	return d
}

func copyOf(s binding.Snapshot) binding.Snapshot {
	return binding.Snapshot{
		Volumes: copies(s.Volumes), Claims: copies(s.Claims), Classes: copies(s.Classes), Pods: copies(s.Pods), Attachments: copies(s.Attachments),
		Live: slices.Clone(s.Live), Answers: copiesOfAnswers(s.Answers),
	}
}

func copiesOfAnswers(answers []binding.Answer) []binding.Answer {
	copied := slices.Clone(answers)
	for i := range copied {
		copied[i].Volume = copied[i].Volume.DeepCopy()
	}
	return copied
}

func copies[T interface{ DeepCopy() T }](objects []T) []T {
	copied := slices.Clone(objects)
	for i := range copied {
		copied[i] = copied[i].DeepCopy()
	}
	return copied
}

// spoil changes whatever a write holds that could belong to somebody else. A hook gets copies (Rh), and what is
// deleted is not sent.
func spoil(action binding.Action) {
	if !action.Writes() || action.Kind == binding.DeleteVolume {
		return
	}
	if volume := action.Volume; volume != nil {
		spoilMeta(&volume.ObjectMeta)
		spoilModes(volume.Spec.AccessModes)
		clear(volume.Spec.Capacity)
		for i := range volume.Spec.MountOptions {
			volume.Spec.MountOptions[i] = "spoilt"
		}
		if name := volume.Spec.VolumeAttributesClassName; name != nil {
			*name = "spoilt"
		}
		if volume.Spec.ClaimRef != nil {
			volume.Spec.ClaimRef.UID = "spoilt"
		}
	}
	if claim := action.Claim; claim != nil {
		spoilMeta(&claim.ObjectMeta)
		spoilModes(claim.Spec.AccessModes)
		spoilModes(claim.Status.AccessModes)
		clear(claim.Spec.Resources.Requests)
		clear(claim.Status.Capacity)
		for _, name := range []*string{claim.Spec.StorageClassName, claim.Status.CurrentVolumeAttributesClassName} {
			if name != nil {
				*name = "spoilt"
			}
		}
	}
}

func spoilMeta(meta *metav1.ObjectMeta) {
	clear(meta.Annotations)
	clear(meta.Labels)
	for i := range meta.Finalizers {
		meta.Finalizers[i] = "spoilt"
	}
}

func spoilModes(modes []corev1.PersistentVolumeAccessMode) {
	for i := range modes {
		modes[i] = "spoilt"
	}
}

// knowing is what a decision may know of the rest.
func knowing(objects ...obj.Object) binding.Snapshot {
	var known binding.Snapshot
	for _, object := range objects {
		switch object := object.(type) {
		case *corev1.PersistentVolume:
			known.Volumes = append(known.Volumes, object)
		case *corev1.PersistentVolumeClaim:
			known.Claims = append(known.Claims, object)
		case *storagev1.StorageClass:
			known.Classes = append(known.Classes, object)
		case *corev1.Pod:
			known.Pods = append(known.Pods, object)
		case *storagev1.VolumeAttachment:
			known.Attachments = append(known.Attachments, object)
		}
	}
	return known
}

// complete is the row with its object among what is known.
func (d decision) complete() decision {
	if d.claim != nil {
		d.known.Claims = append(slices.Clip(d.known.Claims), d.claim)
	} else {
		d.known.Volumes = append(slices.Clip(d.known.Volumes), d.volume)
	}
	return d
}

// proving is what was known, with these keys read live.
func proving(known binding.Snapshot, live ...obj.Key) binding.Snapshot {
	known.Live = live
	return known
}
