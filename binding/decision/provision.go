package decision

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/pvbind/pvbind/binding/hooks"
	"github.com/pvbind/pvbind/binding/match"
	"github.com/pvbind/pvbind/binding/obj"
	"github.com/pvbind/pvbind/phase"
	"github.com/pvbind/pvbind/reclaim"
	"github.com/pvbind/pvbind/storageclass"
)

// ProvisionedName returns the name of the volume that is provisioned for the claim with the UID. It is rule P2.
func ProvisionedName(claim types.UID) string { return "pvc-" + string(claim) }

// ProvisionedFor returns the UID of the claim that a volume of that name is provisioned for; "" if it has no such name.
func ProvisionedFor(volume string) types.UID {
	if claim, provisioned := strings.CutPrefix(volume, ProvisionedName("")); provisioned {
		return types.UID(claim)
	}
	return ""
}

// ProvisioningFinalizer is on a claim from before its provisioner is first run until the volume is the claim's.
// Without it the deletion of a claim in between would remove the only trace of the storage made for it.
const ProvisioningFinalizer = "pvbind.github.io/provisioning"

func provisioning(claim *corev1.PersistentVolumeClaim) bool {
	return slices.Contains(claim.Finalizers, ProvisioningFinalizer)
}

// NextForLeftover deletes storage that a sync may have made for a claim which was gone by then. An old leader that has not
// noticed runs its provisioner after the new one has released the claim; only the old one can know of the storage. Storage
// that a volume stands for is left, and reclaimed with the volume. Storage without a volume is attached
// nowhere, since an attachment names its volume. The UID is that of the claim that has the name now, if any.
//
// A cache may lack a claim that exists, or show the one that had its name before. So the claim is proven gone first, as in V3, and
// its volume is read after that: whoever has stored it has done so for a claim that existed then.
//
// The deleter is called once in a sync. If it has not finished or has failed, the action is a Wait, which holds nothing up that
// is to be done for another claim of the name: see Action.Beside.
func NextForLeftover(claim obj.Key, uid types.UID, made []Answer, view View, options Options) (action Action, left bool) {
	var waiting Action
	for _, answer := range made {
		if answer.Of != RunProvisioner || answer.For == uid || !options.Hooks.Deleters.Has(answer.Hook) {
			continue
		}
		volume := leftoverOf(claim, answer)
		deleted, ran := lastOf(answer.Hook, view.Answered(RunDeleter, answer.For))
		stored, source := view.Volume(volume.Name)
		now, proof := view.Claim(claim.Namespace, claim.Name)
		switch {
		case stored != nil || ran && deleted.Err == nil:
			continue
		case answer.Unsettled:
			waiting = mayBeStored(volume.Spec.ClaimRef, answer).Beside(waiting)
			continue
		case ran:
			waiting = notDeleted(volume.Spec.ClaimRef, deleted).Beside(waiting)
			continue
		case outdated(claim, now, answer.Version, view):
			waiting = wait("P2", "what shows how it was before the claim proves nothing of that, for which storage was made").withBackoff().Beside(waiting)
			continue
		case !proof.IsLive():
			return ReadLive(claim, "P2", "before what was made for it is deleted"), true
		case !source.IsLive():
			return ReadLive(obj.VolumeKey(volume.Name), "P2", "before what was made for a claim that is gone is deleted"), true
		case obj.IsBefore(view.AbsentAsOf(obj.VolumeKey(volume.Name)), cmp.Or(goneAsOf(claim, now, view), answer.Version)):
			waiting = wait("P2", "what shows that there is no volume as of before the claim went proves nothing of a volume that was retained").withBackoff().Beside(waiting)
			continue
		}
		// Nobody announces it, for there is no object to do so on. The call is made soon after those reads, or not at all: a
		// restore of the server, and nothing else, brings the claim back, and its name into use.
		return Action{Kind: RunDeleter, Hook: answer.Hook, Volume: volume, Token: max(answer.Token+1, view.Clock().UnixNano()), Rule: "P2", Why: "it was made for a claim that is gone"}, true
	}
	return waiting, waiting.Kind == Wait
}

// goneAsOf returns a resourceVersion as of which an earlier claim is gone: that of the claim which has its name now, or as of which there
// is none; "" if a read does not tell.
func goneAsOf(claim obj.Key, now *corev1.PersistentVolumeClaim, view View) string {
	if now != nil {
		return now.ResourceVersion
	}
	return view.AbsentAsOf(claim)
}

// mayBeStored returns the Wait about what was made for a claim that is gone, where it is not known whether its volume was stored: then it was reclaimed as
// its policy says, or is retained.
func mayBeStored(gone *corev1.ObjectReference, made Answer) Action {
	message := fmt.Sprintf("volume %q may have been stored, and gone with the claim: what provisioner %q made for it, if that is still there, is not deleted; look at it, and delete it by hand", ProvisionedName(made.For), made.Hook)
	return wait("P2", message, cleanupFailed(gone, message))
}

// cleanupFailed returns the event about what was made for a claim that is gone.
func cleanupFailed(gone *corev1.ObjectReference, message string) Event {
	claim := &corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Namespace: gone.Namespace, Name: gone.Name, UID: gone.UID}}
	return warning(claim, EventProvisioningCleanup, message)
}

// notDeleted returns the Wait after a deleter that has not deleted what was made for a claim that is gone.
func notDeleted(gone *corev1.ObjectReference, answer Answer) Action {
	if answer.hookError().Meaning == hooks.InProgress {
		return answer.retry(wait("Rh", "the deleter is at work on what was made for a claim that is gone"))
	}
	message := fmt.Sprintf("the storage made for the claim, which is gone, could not be deleted again: %v", answer.Err)
	return answer.retry(wait("P2", message, cleanupFailed(gone, message)))
}

// provision decides on a claim with a class that no existing volume fits. If no provisioner serves the class, the claim waits
// (P1). An external provisioner is told by annotations (P3), and a registered one is run (P2).
func provision(claim *corev1.PersistentVolumeClaim, class *storagev1.StorageClass, view View, options Options) (action Action, err error) {
	provisioner, problem := provisionerOf(claim, class, options)
	if problem != "" {
		waiting := wait("P1", problem, warning(claim, EventProvisioningFailed, problem))
		return waiting.explained(Explanation{State: ClaimUnprovisionable, Class: storageclass.OfClaim(claim)}), nil
	}
	node, usable := storageclass.SelectedNode(claim), ""
	if node != "" {
		usable = fmt.Sprintf(" that node %q can use", node)
	}
	awaited := fmt.Sprintf("waiting for the provisioner %q to make a volume%s for the claim, "+
		"or for an administrator to reserve one that fits (claimRef with namespace and name)", provisioner, usable)
	annotating, unannotated := annotateForProvisioner(claim, provisioner, options)
	switch {
	case provisioning(claim) && claimProvisioner(claim) != provisioner:
		action = abandonProvisioning(claim, view, options)
	case !options.Hooks.Provisioners.Has(provisioner) && wasAnothers(view.Former(ProvisionedName(claim.UID)), claim):
		action = refuseAnothers(claim)
	case unannotated:
		action = annotating
	case options.Hooks.Provisioners.Has(provisioner):
		action, err = runProvisioner(claim, class, provisioner, view, options)
	default:
		action = wait("P3", awaited, normal(claim, EventExternalProvisioning, awaited))
	}
	explanation := Explanation{State: ClaimAwaitsProvisioner, Class: class.Name, Provisioner: provisioner, Node: node}
	if action.Kind != Wait {
		explanation.Message = awaited
	}
	return action.explained(explanation), err
}

// provisionerOf returns the provisioner of the class, the CSI driver's name where it is migrated, or the
// reason why there is none.
func provisionerOf(claim *corev1.PersistentVolumeClaim, class *storagev1.StorageClass, options Options) (provisioner, problem string) {
	if class == nil {
		return "", fmt.Sprintf("no volume fits, and the storage class %q that could provision one does not exist", storageclass.OfClaim(claim))
	}
	if driver := options.Migrations.Driver(class.Provisioner); driver != "" {
		return driver, ""
	}
	switch {
	case !storageclass.Provisions(class):
		return "", fmt.Sprintf("no volume fits, and the storage class %q provisions none (provisioner %q)", class.Name, class.Provisioner)
	case storageclass.InTree(class.Provisioner) && !options.Hooks.Provisioners.Has(class.Provisioner):
		return "", fmt.Sprintf("no volume fits, and the in-tree provisioner %q of storage class %q does not exist any more", class.Provisioner, class.Name)
	}
	return class.Provisioner, ""
}

// annotateForProvisioner gives the claim the annotations that an external provisioner reacts to, unless it has them. The same write sets migrated-to (G2) and, for a registered provisioner whose storage a registered deleter could
// delete again, the finalizer that keeps the claim until that is settled.
func annotateForProvisioner(claim *corev1.PersistentVolumeClaim, provisioner string, options Options) (action Action, unannotated bool) {
	annotated := claim.Annotations[storageclass.ProvisionerAnnotation] == provisioner && claim.Annotations[storageclass.BetaProvisionerAnnotation] == provisioner
	finalize := options.Hooks.Provisioners.Has(provisioner) && options.Hooks.Deleters.Has(provisioner) && !provisioning(claim)
	if annotated && !finalize {
		return Action{}, false
	}
	return update(claim, func(metadata *metav1.ObjectMeta) {
		if finalize {
			metadata.Finalizers = append(metadata.Finalizers, ProvisioningFinalizer)
		}
		metav1.SetMetaDataAnnotation(metadata, storageclass.ProvisionerAnnotation, provisioner)
		metav1.SetMetaDataAnnotation(metadata, storageclass.BetaProvisionerAnnotation, provisioner)
		setMigratedTo(metadata.Annotations, options.Migrations.Driver(provisioner))
	}, "P3", "ask the provisioner "+provisioner), true
}

// refuseAnothers returns the Wait of a claim for which storage was made that was given to another claim at last: its provisioner would find it again. It tells
// what is safe also once every controller that knows of the other claim has ended: a volume that is there keeps its storage.
func refuseAnothers(claim *corev1.PersistentVolumeClaim) Action {
	message := fmt.Sprintf("volume %q was made for the claim, and then reserved for another one: its storage is not made the claim's again; if that storage has data that is needed, create that volume again, with reclaim policy Retain and the claimRef of the other one, then delete the claim and create it again", ProvisionedName(claim.UID))
	return wait("P2", message, warning(claim, EventProvisioningFailed, message))
}

// createTries is how often a CreateVolume is tried before the storage is deleted again (P2).
const createTries = 3

// runProvisioner makes the volume for a claim with a registered provisioner (P2). Until the volume is stored, a
// crash leaves a claim with its finalizer: it is provisioned again, and the provisioner returns the same
// storage; or the claim is deleted, and its storage before it (see abandonProvisioning).
func runProvisioner(claim *corev1.PersistentVolumeClaim, class *storagev1.StorageClass, provisioner string, view View, options Options) (Action, error) {
	if claim.UID == "" {
		return Action{}, missingUID(claim)
	}
	request := newProvisionRequest(claim, class, provisioner)
	name := request.Volume.Name
	made, ran := lastOf(provisioner, view.Answered(RunProvisioner, claim.UID))
	_, known := view.Claim(claim.Namespace, claim.Name)
	switch volume, source := view.Volume(name); {
	case !source.IsLive() && (!ran || volume != nil): // before the hook, and whenever a cache has a volume of that name
		return ReadLive(obj.VolumeKey(name), "P2", "before storage is made for it"), nil
	case volume != nil:
		return nameTaken(claim, volume, view), nil
	case !ran && wasAnothers(view.Former(name), claim):
		return refuseAnothers(claim), nil
	case !ran && mayLose(claim, provisioner, view):
		problem := "what may have been made for it before is deleted first; then it is made anew"
		return discard(claim, request.Volume, problem, view, options), nil
	case !ran && !known.IsLive(): // or it may be gone, and what was made for it retained, which the provisioner would find
		return ReadLive(obj.KeyOf(claim), "P2", "before storage is made for it"), nil
	case !ran:
		token, problem := provisionToken(claim, view)
		if problem != "" {
			return wait("R8", problem, warning(claim, EventProvisioningFailed, problem)).withBackoff(), nil
		}
		request.Token = token
		return Action{Kind: RunProvisioner, Hook: provisioner, Request: request, Rule: "P2", Why: "no volume fits, and class " + class.Name + " provisions"}, nil
	case made.Err != nil:
		return notProvisioned(claim, made), nil
	}
	volume, problem := volumeToStore(request, made.Volume, view, options)
	if problem != "" {
		return reschedule(claim, discard(claim, volume, problem, view, options)), nil
	}
	if failures := failed(view.Answered(CreateVolume, claim.UID)); len(failures) >= createTries { // the node is not to blame
		problem := fmt.Sprintf("the volume could not be stored: %v", failures[len(failures)-1].Err)
		if slices.ContainsFunc(failures, func(failure Answer) bool { return failure.Unsettled }) {
			return wait("P2", problem, warning(claim, EventProvisioningFailed, problem)).withBackoff(), nil // its storage may be needed yet
		}
		return discard(claim, volume, problem, view, options), nil
	}
	if len(view.Answered(RunDeleter, claim.UID)) > 0 { // of the provisioner that the class had before
		return wait("P2", "the storage that was provisioned for the claim was deleted; it will be provisioned again").withBackoff(), nil
	}
	// A crash after this write leaves a volume that is bound to the claim, and the binding goes on from there.
	return Action{Kind: CreateVolume, Volume: volume, Rule: "P2", Why: "its storage is made", Events: []Event{
		normal(claim, EventProvisioned, fmt.Sprintf("the provisioner %q made volume %q", provisioner, name)),
	}}, nil
}

// nameTaken returns a Wait, because a volume of the name to be provisioned exists, though the search did not choose it.
func nameTaken(claim *corev1.PersistentVolumeClaim, volume *corev1.PersistentVolume, view View) Action {
	why := "it is not the claim's"
	if phase.ClaimRefStateOf(volume, claim) == phase.ClaimRefBound {
		mismatches, _ := match.CheckNamed(claim, volume, view.Parsed(claim)) // no error, for the search had none
		why = "it does not fit: " + mismatches.String()
	}
	message := fmt.Sprintf("the volume %q that would be provisioned exists, and %s", volume.Name, why)
	return wait("P2", message, warning(claim, EventProvisioningFailed, message)).withBackoff()
}

// notProvisioned returns the action after a provisioner that failed or is still in progress.
func notProvisioned(claim *corev1.PersistentVolumeClaim, answer Answer) Action {
	if answer.hookError().Meaning == hooks.InProgress {
		return answer.retry(wait("Rh", "the provisioner is at work"))
	}
	message := fmt.Sprintf("the provisioner failed: %v", answer.Err)
	failed := answer.retry(wait("P2", message, warning(claim, EventProvisioningFailed, message)))
	switch answer.hookError().Meaning {
	case hooks.Refused, hooks.StaleToken, hooks.NotReturned: // on every node
		return failed
	}
	return reschedule(claim, failed)
}

// reschedule replaces a Wait by the write that removes the claim's selected node, so that the scheduler chooses another.
func reschedule(claim *corev1.PersistentVolumeClaim, waiting Action) Action {
	if waiting.Kind != Wait || !metav1.HasAnnotation(claim.ObjectMeta, storageclass.SelectedNodeAnnotation) {
		return waiting
	}
	action := update(claim, func(metadata *metav1.ObjectMeta) {
		delete(metadata.Annotations, storageclass.SelectedNodeAnnotation)
	}, "P2", waiting.Why)
	action.Events = waiting.Events
	return action
}

// newProvisionRequest returns what a provisioner is to make for a claim. The class may be nil where the
// storage is only to be deleted again.
func newProvisionRequest(claim *corev1.PersistentVolumeClaim, class *storagev1.StorageClass, provisioner string) *hooks.ProvisionRequest {
	volume := volumeFor(claim, ProvisionedName(claim.UID), corev1.PersistentVolumeReclaimDelete) // the class default (A6)
	volume.Annotations = map[string]string{
		phase.BoundByControllerAnnotation: "yes",
		phase.ProvisionedByAnnotation:     provisioner,
	}
	volume.Spec.VolumeMode = new(match.VolumeModeOf(claim.Spec.VolumeMode))
	if class != nil {
		volume.Spec.MountOptions = slices.Clone(class.MountOptions)
		if class.ReclaimPolicy != nil {
			volume.Spec.PersistentVolumeReclaimPolicy = *class.ReclaimPolicy
		}
	}
	return &hooks.ProvisionRequest{Claim: claim, Class: class, Node: storageclass.SelectedNode(claim), Volume: volume}
}

// volumeFor returns a volume without a source that suits the claim exactly. It shares nothing with the claim (X6).
func volumeFor(claim *corev1.PersistentVolumeClaim, name string, policy corev1.PersistentVolumeReclaimPolicy) *corev1.PersistentVolume {
	spec := claim.Spec.DeepCopy()
	return &corev1.PersistentVolume{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: corev1.PersistentVolumeSpec{
			Capacity:                      corev1.ResourceList{corev1.ResourceStorage: spec.Resources.Requests[corev1.ResourceStorage]},
			AccessModes:                   spec.AccessModes,
			ClaimRef:                      referenceTo(claim),
			PersistentVolumeReclaimPolicy: policy,
			StorageClassName:              storageclass.OfClaim(claim),
			VolumeMode:                    spec.VolumeMode,
			VolumeAttributesClassName:     spec.VolumeAttributesClassName,
		},
	}
}

// volumeToStore returns the volume to store for what the provisioner made, and what is wrong with it; "" if nothing is.
// What is not the provisioner's choice is put right: the claimRef, what follows from the class, and the annotations that decide
// what becomes of the storage. One that copies those of the claim copies what its tenant wrote.
func volumeToStore(r *hooks.ProvisionRequest, made *corev1.PersistentVolume, view View, options Options) (volume *corev1.PersistentVolume, problem string) {
	if made == nil {
		return r.Volume, "the provisioner returned no volume"
	}
	volume = made.DeepCopy()
	volume.TypeMeta, volume.Status = metav1.TypeMeta{}, corev1.PersistentVolumeStatus{}
	volume.ObjectMeta = metav1.ObjectMeta{Name: r.Volume.Name, Labels: volume.Labels, Annotations: volume.Annotations, Finalizers: volume.Finalizers}
	maps.DeleteFunc(volume.Annotations, func(key, _ string) bool { return decidesReclaim(key) })
	for key, value := range r.Volume.Annotations {
		metav1.SetMetaDataAnnotation(&volume.ObjectMeta, key, value)
	}
	volume.Spec.ClaimRef = r.Volume.Spec.ClaimRef
	volume.Spec.StorageClassName = r.Volume.Spec.StorageClassName
	volume.Spec.VolumeAttributesClassName = r.Volume.Spec.VolumeAttributesClassName
	volume.Spec.PersistentVolumeReclaimPolicy = r.Volume.Spec.PersistentVolumeReclaimPolicy
	if len(volume.Spec.MountOptions) == 0 { // it may have others, but not lose them
		volume.Spec.MountOptions = r.Volume.Spec.MountOptions
	}
	volume.Finalizers = reclaim.Finalizers(volume, options.reclaim())
	if made.Name != r.Volume.Name {
		return volume, fmt.Sprintf("the provisioner named the volume %q, and not %q", made.Name, r.Volume.Name)
	}
	return volume, problemOf(r.Claim, volume, view)
}

// decidesReclaim reports whether an annotation says that storage is being reclaimed, or who is to do so.
func decidesReclaim(annotation string) bool {
	return strings.HasPrefix(annotation, "pvbind.github.io/") || annotation == storageclass.MigratedToAnnotation
}

// problemOf returns why the claim could not get the volume that a provisioner returned; "" if it could.
func problemOf(claim *corev1.PersistentVolumeClaim, volume *corev1.PersistentVolume, view View) string {
	malformed := match.CheckWellFormed(volume)
	mismatches, _ := match.CheckNamed(claim, volume, view.Parsed(claim)) // no error, for the search had none
	switch {
	case reclaim.SourceName(volume) == "":
		return "the provisioner returned a volume without a source"
	case malformed != nil:
		return "the provisioner returned a malformed volume: " + malformed.Error()
	case len(mismatches) > 0:
		return "the provisioner returned a volume that does not fit the claim: " + mismatches.String()
	}
	return ""
}

// leftoverOf returns the volume that storage was made for, as far as a deleter needs it.
func leftoverOf(claim obj.Key, made Answer) *corev1.PersistentVolume {
	volume := cmp.Or(made.Volume.DeepCopy(), &corev1.PersistentVolume{})
	volume.ObjectMeta = metav1.ObjectMeta{
		Name:        ProvisionedName(made.For),
		Annotations: map[string]string{phase.ProvisionedByAnnotation: made.Hook},
	}
	volume.Spec.ClaimRef = referenceTo(&corev1.PersistentVolumeClaim{
		ObjectMeta: metav1.ObjectMeta{Namespace: claim.Namespace, Name: claim.Name, UID: made.For},
	})
	return volume
}

// abandonProvisioning ends the provisioning for a claim that is being deleted, or got another volume or another provisioner.
// The storage that may have been made for it is deleted, unless a volume stands for it, and the finalizer goes.
func abandonProvisioning(claim *corev1.PersistentVolumeClaim, view View, options Options) Action {
	provisioner, name := claimProvisioner(claim), ProvisionedName(claim.UID)
	why := "what was made for the claim is not needed"
	var told []Event
	volume, source := view.Volume(name)
	stands := view.MayStandFor(obj.KeyOf(claim), claim.UID)
	switch {
	case claim.Spec.VolumeName == name && (volume != nil || phase.Owned(claim) == name):
		// The volume stood for the storage. If it is gone, that was as its policy says, Retain perhaps.
	case claim.Spec.VolumeName == name: // its tenant may have written that
		message := fmt.Sprintf("volume %q, which the claim names, is not there: what provisioner %q made for the claim, if that is still there, is not deleted; look at it, and delete it by hand", name, provisioner)
		told = append(told, warning(claim, EventProvisioningCleanup, message))
	case !source.IsLive():
		return ReadLive(obj.VolumeKey(name), "P2", "before what was made for the claim is deleted")
	case volume == nil && wasAnothers(view.Former(name), claim):
		message := fmt.Sprintf("volume %q stood for what provisioner %q made for the claim, was given to another one, and is gone: its storage is not deleted", name, provisioner)
		told = append(told, warning(claim, EventProvisioningCleanup, message))
	case volume == nil && !options.Hooks.Deleters.Has(provisioner):
		message := fmt.Sprintf("what provisioner %q made for the claim, if anything, is not deleted, for no deleter of that name is registered here: run a controller that has it, or delete the storage by hand and then take the finalizer %s off the claim", provisioner, ProvisioningFinalizer)
		return wait("P2", message, warning(claim, EventProvisioningCleanup, message))
	case volume == nil && stands != "":
		told = append(told, warning(claim, EventProvisioningCleanup, mayStandText(stands, provisioner)))
	case volume == nil:
		made, _ := lastOf(provisioner, view.Answered(RunProvisioner, claim.UID))
		expected, _ := volumeToStore(newProvisionRequest(claim, nil, provisioner), made.Volume, view, options)
		if action, gone := deleteUnstored(claim, expected, why, view, options); !gone {
			return action
		}
	}
	if read, unread := readOwnVolume(claim, view); unread && claim.DeletionTimestamp != nil { // no other finalizer may be left
		return read
	}
	// A crash before this write leaves the finalizer, and the deleter is run once more.
	noted, success := unstored(claim, provisioner, view, options)
	action := update(claim, func(metadata *metav1.ObjectMeta) {
		metadata.Finalizers = without(metadata.Finalizers, ProvisioningFinalizer)
		if success && claim.DeletionTimestamp == nil && claim.Spec.VolumeName == "" { // the next provisioner need not ask its own deleter
			reclaim.Announce(metadata, noted)
		}
	}, "P2", why)
	action.Events = told
	return action
}

// wasAnothers reports whether a volume that is gone, and was not reclaimed, was another claim's, or reserved for one: its data may be needed.
func wasAnothers(former *corev1.PersistentVolume, claim *corev1.PersistentVolumeClaim) bool {
	if former == nil || former.Spec.ClaimRef == nil {
		return false
	}
	if uid := former.Spec.ClaimRef.UID; uid != "" {
		return uid != claim.UID
	}
	return obj.ReferencedClaim(former) != obj.KeyOf(claim)
}

// mayStandText says why what was made for a claim is not deleted.
func mayStandText(volume, provisioner string) string {
	return fmt.Sprintf("volume %q may stand for what provisioner %q made for the claim, or was stored for it before the API server went back in time: that is not deleted; look at it, and delete it by hand if nobody needs it", volume, provisioner)
}

// StandsInstead reports whether the volume is one that a person has reserved for a claim, by its name or UID: perhaps of what a provisioner has made for that, and
// had no volume (P2).
func StandsInstead(volume *corev1.PersistentVolume, claim obj.Key, uid types.UID) bool {
	ref := volume.Spec.ClaimRef
	reserved := ref != nil && obj.ReferencedClaim(volume) == claim && (ref.UID == "" || ref.UID == uid)
	return reserved && !phase.BoundByController(volume) && volume.Name != ProvisionedName(uid)
}

// discard deletes the storage that was made for a volume which cannot be stored, unless a live read shows that volume. Until the
// deleter has succeeded the next sync goes on with that.
func discard(claim *corev1.PersistentVolumeClaim, volume *corev1.PersistentVolume, problem string, view View, options Options) Action {
	if _, source := view.Volume(volume.Name); !source.IsLive() {
		return ReadLive(obj.VolumeKey(volume.Name), "P2", "before its storage is deleted again")
	}
	action, gone := deleteUnstored(claim, volume, problem, view, options)
	if gone {
		action = noteUnstored(claim, volume.Annotations[phase.ProvisionedByAnnotation], view, options)
	}
	if action.Kind != Nothing && action.Kind != Wait {
		return action
	}
	events := failedIn(volume.Annotations[phase.ProvisionedByAnnotation], []Event{warning(claim, EventProvisioningFailed, problem)})
	waiting := wait("P2", problem, append(events, action.Events...)...).withBackoff()
	if action.After > 0 { // the deleter has not finished
		waiting.Retry, waiting.After = RetryAfter, action.After
	}
	return waiting
}

// deleteUnstored runs the deleter for storage that no volume stands for, as a live read has shown, and reports whether the
// storage is gone. If it is not, the action is the next step to that, or a Wait. Such storage is attached nowhere, since an
// attachment names its volume. It is announced on the claim: another controller may be about to store the volume (R8).
func deleteUnstored(claim *corev1.PersistentVolumeClaim, volume *corev1.PersistentVolume, why string, view View, options Options) (action Action, gone bool) {
	provisioner := volume.Annotations[phase.ProvisionedByAnnotation]
	deleted, ran := lastOf(provisioner, view.Answered(RunDeleter, claim.UID))
	stands := view.MayStandFor(obj.KeyOf(claim), claim.UID)
	switch {
	case stands != "":
		message := mayStandText(stands, provisioner)
		return wait("P2", message, warning(claim, EventProvisioningCleanup, message)).withBackoff(), false
	case !ran && options.Hooks.Deleters.Has(provisioner):
		if waiting, blocked := awaitAnnounced(claim, obj.KeyOf(claim), view, options); blocked { // of a claim that was bound
			return waiting, false
		}
		action, problem := callUnstored(claim, volume, why, view, options)
		if problem == "" {
			return action, false
		}
		deleted.Err = errors.New(problem)
	case !ran:
		deleted.Err = fmt.Errorf("no deleter for provisioner %q is registered", provisioner)
	case deleted.Err == nil:
		return Action{}, true
	case deleted.hookError().Meaning == hooks.InProgress:
		return deleted.retry(wait("Rh", "the deleter is at work")), false
	}
	message := fmt.Sprintf("the storage made for the claim could not be deleted again: %v", deleted.Err)
	return deleted.retry(wait("P2", message, warning(claim, EventProvisioningCleanup, message))), false
}

// callUnstored announces the call of the deleter on the claim, reads the claim live once more, and returns the call. The
// announcement is a write, after which the volume is read anew, too.
func callUnstored(claim *corev1.PersistentVolumeClaim, volume *corev1.PersistentVolume, why string, view View, options Options) (action Action, problem string) {
	token := unspent(announcedToken(claim, view, options), view.Answered(RunDeleter, claim.UID))
	if token == 0 {
		return announce(claim, RunDeleter, view, options)
	}
	if _, source := view.Claim(claim.Namespace, claim.Name); source != FromLiveRead {
		return ReadLive(obj.KeyOf(claim), "R8", "its announcement must stand when the storage is deleted"), ""
	}
	return Action{Kind: RunDeleter, Hook: volume.Annotations[phase.ProvisionedByAnnotation], Volume: volume, Token: token, Rule: "P2", Why: why}, ""
}
