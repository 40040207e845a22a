package scenario

import (
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/pvbind/pvbind/accessmode"
	"github.com/pvbind/pvbind/binding/bindingtest"
	"github.com/pvbind/pvbind/binding/obj"
	"github.com/pvbind/pvbind/storageclass"
)

const unset = "-"

// of returns a column of one type of object.
func of[T obj.Object](name string, get func(T) string, set func(T, string) error) column {
	return column{name: name,
		get: func(o obj.Object) string { return orUnset(get(o.(T))) },
		Set: func(o obj.Object, cell string) error { return set(o.(T), cell) },
	}
}

// text returns a column that stands for a string.
func text[T obj.Object, S ~string](name string, field func(T) *S) column {
	return of(name,
		func(o T) string { return string(*field(o)) },
		func(o T, cell string) error { *field(o) = S(orEmpty(cell)); return nil })
}

// pointer returns a column that stands for a string that may be nil, or empty, which is written "".
func pointer[T obj.Object, S ~string](name string, field func(T) **S) column {
	return of(name,
		func(o T) string {
			switch value := *field(o); {
			case value == nil:
				return unset
			case *value == "":
				return `""`
			default:
				return string(*value)
			}
		},
		func(o T, cell string) error {
			*field(o) = nil
			if cell != unset {
				value := S(strings.Trim(cell, `"`))
				*field(o) = &value
			}
			return nil
		})
}

func inStatus(c column) column {
	c.status = true
	return c
}

func orEmpty(cell string) string {
	if cell == unset {
		return ""
	}
	return cell
}

func orUnset(value string) string {
	if value == "" {
		return unset
	}
	return value
}

func metadataColumns() []column {
	get := func(obj.Object) string { return "" }
	return []column{
		of("UID", get, func(o obj.Object, cell string) error { o.SetUID(types.UID(orEmpty(cell))); return nil }),
		of("LABELS", get, func(o obj.Object, cell string) error { o.SetLabels(pairs(cell)); return nil }),
		of("ANNOTATIONS", get, func(o obj.Object, cell string) error { o.SetAnnotations(pairs(cell)); return nil }),
		of("FINALIZERS", get, func(o obj.Object, cell string) error { o.SetFinalizers(list(cell)); return nil }),
		of("DELETED", get, setDeleted),
	}
}

func setDeleted(object obj.Object, cell string) error {
	object.SetDeletionTimestamp(nil)
	if cell == unset {
		return nil
	}
	at, err := time.Parse(time.DateOnly, cell)
	object.SetDeletionTimestamp(&metav1.Time{Time: at})
	return err
}

func list(cell string) []string {
	if cell == unset {
		return nil
	}
	return strings.Split(cell, ",")
}

// pairs reads "a=1,b": the value of b is "yes", as controllers write it.
func pairs(cell string) map[string]string {
	found := map[string]string{}
	for _, item := range list(cell) {
		name, value, ok := strings.Cut(item, "=")
		if !ok {
			value = "yes"
		}
		found[name] = value
	}
	return found
}

// statusOf returns what kubectl prints as the status.
func statusOf(object obj.Object, phase string) string {
	if object.GetDeletionTimestamp() != nil {
		return "Terminating"
	}
	return phase
}

func storageIn(list corev1.ResourceList) string {
	size, ok := list[corev1.ResourceStorage]
	if !ok {
		return unset
	}
	return size.String()
}

func setStorage(list *corev1.ResourceList, cell string) error {
	*list = nil
	if cell == unset {
		return nil
	}
	size, err := resource.ParseQuantity(cell)
	*list = corev1.ResourceList{corev1.ResourceStorage: size}
	return err
}

func modesIn(modes []corev1.PersistentVolumeAccessMode) string {
	set, _ := accessmode.Of(modes...) // what the server stores is known
	return set.String()
}

func setModes(modes *[]corev1.PersistentVolumeAccessMode, cell string) error {
	*modes = nil
	known := map[string]corev1.PersistentVolumeAccessMode{
		"RWO": corev1.ReadWriteOnce, "ROX": corev1.ReadOnlyMany, "RWX": corev1.ReadWriteMany, "RWOP": corev1.ReadWriteOncePod,
	}
	for _, short := range list(cell) {
		mode, ok := known[short]
		if !ok {
			return fmt.Errorf("unknown access mode %q", short)
		}
		*modes = append(*modes, mode)
	}
	return nil
}

// claimRefIn returns "default/data" without a UID, "default/data:uid-3" with one.
func claimRefIn(volume *corev1.PersistentVolume) string {
	ref := volume.Spec.ClaimRef
	if ref == nil {
		return unset
	}
	return strings.TrimSuffix(ref.Namespace+"/"+ref.Name+":"+string(ref.UID), ":")
}

// SetClaimRef sets the claimRef to what a cell says: "default/data", "default/data:uid-3", or "-" for none.
func SetClaimRef(volume *corev1.PersistentVolume, cell string) error {
	volume.Spec.ClaimRef = nil
	if cell == unset {
		return nil
	}
	name, uid, _ := strings.Cut(cell, ":")
	namespace, name, found := strings.Cut(name, "/")
	if !found {
		return fmt.Errorf("%q is not like default/data or default/data:uid-1", cell)
	}
	volume.Spec.ClaimRef = &corev1.ObjectReference{
		Kind: string(obj.KindClaim), APIVersion: "v1", Namespace: namespace, Name: name, UID: types.UID(uid),
	}
	return nil
}

func sourceIn(*corev1.PersistentVolume) string { return "" }

// setSource knows a path on a node, a volume of a CSI driver ("csi:ebs.csi.aws.com") and an in-tree one.
func setSource(volume *corev1.PersistentVolume, cell string) error {
	source := &volume.Spec.PersistentVolumeSource
	*source = corev1.PersistentVolumeSource{}
	kind, name, _ := strings.Cut(cell, ":")
	switch kind {
	case "csi":
		source.CSI = &corev1.CSIPersistentVolumeSource{Driver: name, VolumeHandle: volume.Name}
	case "ebs":
		source.AWSElasticBlockStore = &corev1.AWSElasticBlockStoreVolumeSource{VolumeID: volume.Name}
	case "nfs":
		source.NFS = &corev1.NFSVolumeSource{Server: "nfs", Path: "/" + volume.Name}
	default:
		return fmt.Errorf("unknown source %q", cell)
	}
	return nil
}

// setSelector reads labels that a volume must have: "disk=ssd,zone=a".
func setSelector(claim *corev1.PersistentVolumeClaim, cell string) error {
	claim.Spec.Selector = nil
	if cell != unset {
		claim.Spec.Selector = &metav1.LabelSelector{MatchLabels: pairs(cell)}
	}
	return nil
}

func setDefaultClass(class *storagev1.StorageClass, cell string) error {
	annotations := class.GetAnnotations()
	delete(annotations, storageclass.IsDefaultAnnotation)
	if cell == "yes" {
		metav1.SetMetaDataAnnotation(&class.ObjectMeta, storageclass.IsDefaultAnnotation, "true")
	} else if cell != unset {
		return fmt.Errorf("%q is neither yes nor %s", cell, unset)
	}
	return nil
}

func startedIn(*corev1.Pod) string { return "" }

// setStarted reads when a kubelet started the pod, "2026-01-01T00:01:00Z".
func setStarted(pod *corev1.Pod, cell string) error {
	started, err := time.Parse(time.RFC3339, cell)
	pod.Status.StartTime = &metav1.Time{Time: started}
	return err
}

func setPodClaims(pod *corev1.Pod, cell string) error {
	pod.Spec.Volumes = slices.Clone(bindingtest.Pod("", "", "", list(cell)...).Spec.Volumes)
	return nil
}
