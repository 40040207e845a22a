package e2e

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/pvbind/pvbind/binding/bindingtest"
	"github.com/pvbind/pvbind/binding/obj"
)

// act does something to the cluster and waits for what must follow.
type act func(t *testing.T, a api)

// given creates objects.
func given(objects ...obj.Object) act {
	return func(t *testing.T, a api) {
		for _, object := range objects {
			_, err := a.Create(t.Context(), object)
			require.NoError(t, err)
		}
	}
}

func becomes(state string) act { return func(t *testing.T, a api) { a.becomes(t, state) } }

func tells(reason, name string) act { return func(t *testing.T, a api) { a.tells(t, reason, name) } }

func deleting(kind obj.Kind, name string) act {
	return func(t *testing.T, a api) {
		key := obj.Key{Kind: kind, Name: name}
		if kind == obj.KindClaim || kind == obj.KindPod {
			key.Namespace = ns
		}
		require.NoError(t, a.Delete(t.Context(), key, metav1.DeleteOptions{}))
	}
}

// changing updates an object until nobody else does so at the same time.
func changing[T obj.Object](object T, change func(T)) act {
	return func(t *testing.T, a api) {
		key, err := bindingtest.KeyOf(object)
		require.NoError(t, err)
		for {
			found, err := a.Get(t.Context(), key)
			require.NoError(t, err)
			change(found.(T))
			if _, err = a.Update(t.Context(), found); !apierrors.IsConflict(err) {
				require.NoError(t, err)
				return
			}
		}
	}
}

// meanwhile has another pair bound, so that what came before it is done with.
func meanwhile(t *testing.T, a api) {
	given(class("other"), volume("z", "1Gi", ofClass("other")), claim("z", "1Gi", inClass("other")))(t, a)
	eventually(t, a.isBound("z"))
	for _, kind := range []obj.Kind{obj.KindClaim, obj.KindVolume, obj.KindClass} {
		keys, err := a.keys(t.Context(), kind)
		require.NoError(t, err)
		for _, key := range keys {
			if key.Name == "z" || key.Name == "other" {
				require.NoError(t, a.destroy(t.Context(), key))
			}
		}
	}
}

var (
	data      = claim("data", "5Gi")
	completed = annotated(bindCompleted, byController)
	web       = bindingtest.Pod(ns, "web", "node", "data")
)

// outcomes are what can become of claims and volumes, each at least once.
var outcomes = map[string][]act{
	"C1 B1-B4 a volume fits": {given(volume("a", "5Gi"), data), becomes("pv a Bound data, pvc data Bound a")},
	"M13 the smallest":       {given(volume("a", "9Gi"), volume("b", "6Gi"), volume("c", "1Gi")), becomes("pv a Available, pv b Available, pv c Available"), given(data), becomes("pv a Available, pv b Bound data, pv c Available, pvc data Bound b")},
	"M13 pre-bound": {
		given(volume("a", "9Gi", forClaim("data")), volume("b", "5Gi")), becomes("pv a Available data?, pv b Available"),
		given(data), becomes("pv a Bound data, pv b Available, pvc data Bound a"),
	},
	"M12 pre-bound and too small": {
		given(volume("a", "1Gi", forClaim("data")), data), tells("VolumeMismatch", "data"), tells("VolumeMismatch", "a"),
		becomes("pv a Available data?, pvc data Pending"),
	},
	"C2 a default class comes": {
		given(data, volume("a", "5Gi", ofClass("fast"))), tells("FailedBinding", "data"),
		given(class("fast", defaultClass)), becomes("pv a Bound data, pvc data Bound a"),
	},
	"C3 no consumer": {
		given(class("late", waiting), volume("a", "5Gi", ofClass("late")), claim("data", "5Gi", inClass("late"))),
		tells("WaitForFirstConsumer", "data"), becomes("pv a Available, pvc data Pending"),
		given(bindingtest.Pod(ns, "web", "", "data")), tells("WaitForPodScheduled", "data"),
	},
	"C4 P1 nobody provisions": {
		given(class("fast"), claim("data", "5Gi", inClass("fast"))), tells("ProvisioningFailed", "data"), becomes("pvc data Pending"),
	},
	"C4 P1 no such class": {given(claim("data", "5Gi", inClass("none"))), tells("ProvisioningFailed", "data")},
	"C5 nothing fits":     {given(volume("a", "1Gi"), data), tells("FailedBinding", "data"), becomes("pv a Available, pvc data Pending")},
	"C6 the volume it names comes": {
		given(claim("data", "5Gi", naming("a"))), meanwhile, becomes("pvc data Pending a"),
		given(volume("a", "5Gi")), becomes("pv a Bound data, pvc data Bound a"),
	},
	"C7 the volume it names fits": {given(volume("a", "5Gi"), claim("data", "5Gi", naming("a"))), becomes("pv a Bound data, pvc data Bound a")},
	"C7 the volume it names does not fit": {
		given(volume("a", "1Gi", block), claim("data", "5Gi", naming("a"))), tells("VolumeMismatch", "data"),
		becomes("pv a Available, pvc data Pending a"),
	},
	"C8 each names the other": {
		given(volume("a", "1Gi", forClaim("data")), claim("data", "5Gi", naming("a"))), becomes("pv a Bound data, pvc data Bound a"),
	},
	"C9 the volume it names is another's": {
		given(volume("a", "5Gi", forClaim("other")), claim("data", "5Gi", naming("a"))), tells("FailedBinding", "data"),
		becomes("pv a Available other?, pvc data Pending a"),
	},
	"C9 and a controller has named it": {
		given(volume("a", "5Gi", forClaim("other")), claim("data", "5Gi", naming("a"), annotated(byController))), tells("FailedBinding", "data"),
	},
	"C10 its volume is gone, and comes back": {
		given(claim("data", "5Gi", naming("a"), completed)), tells("ClaimLost", "data"), becomes("pvc data Lost a"),
		given(volume("a", "5Gi")), becomes("pv a Bound data, pvc data Bound a"),
	},
	"C10 it names no volume":        {given(claim("data", "5Gi", completed)), tells("ClaimLost", "data"), becomes("pvc data Lost")},
	"C10 its volume is another's":   {given(volume("a", "5Gi", forClaim("other")), claim("data", "5Gi", naming("a"), completed)), tells("ClaimMisbound", "data"), becomes("pv a Available other?, pvc data Lost a")},
	"C11 its volume knows nothing":  {given(claim("data", "5Gi", naming("a"), completed), volume("a", "5Gi")), becomes("pv a Bound data, pvc data Bound a")},
	"C12 it is being deleted":       {given(claim("data", "5Gi", held)), deleting(obj.KindClaim, "data"), given(volume("a", "5Gi")), becomes("pv a Available, †pvc data Pending")},
	"M2 a bound claim's own volume": {given(claim("data", "5Gi", naming("a"), completed), claim("more", "5Gi")), becomes("pvc data Lost a, pvc more Pending"), given(volume("a", "5Gi")), becomes("pv a Bound data, pvc data Bound a, pvc more Pending")},
	"V1 nobody's":                   {given(volume("a", "5Gi")), becomes("pv a Available")},
	"V1 pre-bound":                  {given(volume("a", "5Gi", forClaim("data"))), becomes("pv a Available data?")},
	"V2 the claim is not yet told":  {given(data), withClaim(func(c pvc) obj.Object { return volume("a", "5Gi", heldBy(c)) }), becomes("pv a Bound data, pvc data Bound a")},
	"V2 of another volume mode":     {given(data), withClaim(func(c pvc) obj.Object { return volume("a", "5Gi", heldBy(c), block) }), tells("VolumeMismatch", "data"), tells("VolumeMismatch", "a")},
	"V2 V4 the claim has another":   {given(data, volume("a", "5Gi")), becomes("pv a Bound data, pvc data Bound a"), withClaim(func(c pvc) obj.Object { return volume("b", "5Gi", heldBy(c), noted(byController)) }), becomes("pv a Bound data, pv b Available, pvc data Bound a")},
	"V2 V4 and a person said so":    {given(data, volume("a", "5Gi")), becomes("pv a Bound data, pvc data Bound a"), withClaim(func(c pvc) obj.Object { return volume("b", "5Gi", heldBy(c)) }), becomes("pv a Bound data, pv b Available data?, pvc data Bound a")},
	"V2 R3 and it was provisioned": {given(data, volume("a", "5Gi")), becomes("pv a Bound data, pvc data Bound a"), withClaim(func(c pvc) obj.Object {
		return volume("b", "5Gi", heldBy(c), noted(provisionedBy), policy("Delete"))
	}), becomes("pv a Bound data, pv b Released data, pvc data Bound a")},
	"V3 F2 R2 the claim goes":          {given(data, volume("a", "5Gi")), becomes("pv a Bound data, pvc data Bound a"), deleting(obj.KindClaim, "data"), becomes("pv a Released data!")},
	"V3 the claim was another":         {given(volume("a", "5Gi", heldBy(claimOf("data", "earlier")))), given(data), tells("FailedBinding", "data"), becomes("pv a Released data!, pvc data Pending")},
	"V5 F3 the volume goes":            {given(data, volume("a", "5Gi")), becomes("pv a Bound data, pvc data Bound a"), deleting(obj.KindVolume, "a"), becomes("†pv a Bound data, pvc data Bound a"), changing(volume("a", "5Gi"), func(v pv) { v.Finalizers = nil }), becomes("pvc data Lost a"), tells("ClaimLost", "data")},
	"F3 a volume goes that nobody has": {given(volume("a", "5Gi")), deleting(obj.KindVolume, "a"), becomes("")},
	"F2 a pod uses the claim": {
		given(data, volume("a", "5Gi"), web), becomes("pv a Bound data, pvc data Bound a"),
		deleting(obj.KindClaim, "data"), meanwhile, becomes("pv a Bound data, †pvc data Bound a"),
		deleting(obj.KindPod, "web"), becomes("pv a Released data!"),
	},
	"R3 nobody deletes":       {given(data, volume("a", "5Gi", policy("Delete"))), becomes("pv a Bound data, pvc data Bound a"), deleting(obj.KindClaim, "data"), becomes("pv a Failed data!"), tells("VolumeFailedDelete", "a")},
	"R3 another one deletes":  {given(data, volume("a", "5Gi", policy("Delete"), noted(provisionedBy))), becomes("pv a Bound data, pvc data Bound a"), deleting(obj.KindClaim, "data"), becomes("pv a Released data!")},
	"R4 nobody recycles":      {given(data, volume("a", "5Gi", policy("Recycle"))), becomes("pv a Bound data, pvc data Bound a"), deleting(obj.KindClaim, "data"), becomes("pv a Failed data!"), tells("VolumeFailedRecycle", "a")},
	"W1 a volume comes":       {given(data, claim("more", "6Gi")), tells("FailedBinding", "more"), tells("FailedBinding", "data"), given(volume("a", "9Gi")), becomes("pv a Bound more, pvc data Pending, pvc more Bound a")},
	"M9 a volume is set free": {given(data, volume("a", "5Gi")), becomes("pv a Bound data, pvc data Bound a"), deleting(obj.KindClaim, "data"), becomes("pv a Released data!"), changing(volume("a", "5Gi"), func(v pv) { v.Spec.ClaimRef = nil }), becomes("pv a Available"), given(data), becomes("pv a Bound data, pvc data Bound a")},
	"M5 M6 M7 M8 everything is asked for": {
		given(class("fast"), claim("data", "5Gi", inClass("fast"), demanding), volume("a", "5Gi", ofClass("fast"), block), volume("b", "6Gi", ofClass("fast"), block, gold)),
		becomes("pv a Available, pv b Bound data, pvc data Bound b"),
	},
}

// held keeps a claim from going.
func held(c pvc) { c.Finalizers = []string{"example.com/mine"} }

func demanding(c pvc) {
	c.Spec.VolumeMode = ptr(corev1.PersistentVolumeBlock)
	c.Spec.VolumeAttributesClassName = ptr("gold")
	c.Spec.Selector = &metav1.LabelSelector{MatchLabels: map[string]string{"disk": "ssd"}}
}

func gold(v pv) {
	v.Labels = map[string]string{"disk": "ssd"}
	v.Spec.VolumeAttributesClassName = ptr("gold")
	v.Spec.PersistentVolumeSource = corev1.PersistentVolumeSource{CSI: &corev1.CSIPersistentVolumeSource{Driver: "example.com", VolumeHandle: v.Name}}
}

func claimOf(name string, uid types.UID) pvc {
	return claim(name, "5Gi", func(c pvc) { c.UID = uid })
}

// withClaim creates what is made for the claim "data".
func withClaim(object func(pvc) obj.Object) act {
	return func(t *testing.T, a api) {
		found, err := a.Get(t.Context(), obj.ClaimKey(ns, "data"))
		require.NoError(t, err)
		given(object(found.(pvc)))(t, a)
	}
}

func TestOutcomes(t *testing.T) {
	newAPI(t)
	startBinder(t, "pvbinder", "--protection")
	for name, acts := range outcomes {
		t.Run(name, func(t *testing.T) {
			a := newAPI(t)
			for _, act := range acts {
				act(t, a)
			}
		})
	}
}

func TestAnExternalProvisioner(t *testing.T) {
	a := newAPI(t)
	startBinder(t, "pvbinder", "--protection")
	given(class("fast", provisioner("example.com/disks")), claim("data", "5Gi", inClass("fast")))(t, a)
	a.tells(t, "ExternalProvisioning", "data")
	asked := a.claim(t, "data")
	assert.Equal(t, "example.com/disks", asked.Annotations["volume.kubernetes.io/storage-provisioner"], "P3")

	given(volume("pvc-"+string(asked.UID), "5Gi", heldBy(asked), ofClass("fast"), policy("Delete"), func(v pv) {
		v.Annotations = map[string]string{provisionedBy: "example.com/disks"}
	}))(t, a)
	name := "pvc-" + string(asked.UID)
	a.becomes(t, "pv "+name+" Bound data, pvc data Bound "+name)
	deleting(obj.KindClaim, "data")(t, a)
	a.becomes(t, "pv "+name+" Released data!")
	deleting(obj.KindVolume, name)(t, a)
	a.becomes(t, "")
}

func TestAProvisionerThatWaitsForTheScheduler(t *testing.T) {
	a := newAPI(t)
	startBinder(t, "pvbinder", "--protection")
	given(class("fast", provisioner("example.com/disks"), waiting), claim("data", "5Gi", inClass("fast")))(t, a)
	a.tells(t, "WaitForFirstConsumer", "data")
	changing(data, func(c pvc) {
		metav1.SetMetaDataAnnotation(&c.ObjectMeta, "volume.kubernetes.io/selected-node", "node")
	})(t, a)
	a.tells(t, "ExternalProvisioning", "data")
}
