package e2e

import (
	"fmt"
	"math/rand/v2"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/pvbind/pvbind/binding/bindingtest"
	"github.com/pvbind/pvbind/binding/obj"
)

// world is a small cluster and what happens in it, step by step. Several share an API server: their objects have names
// with the world's in front, and a volume of one never fits a claim of another.
type world struct {
	name  string
	steps []step
	// classless worlds have objects without a class too. There must not be two on a server.
	classless bool

	random  *rand.Rand
	volumes []string
	claims  []pvc
}

// step is what happens at once. The next one is taken when all has come to rest.
type step struct {
	what string
	do   []change
}

// newWorld makes a world up. The same seed gives the same.
func newWorld(seed uint64, classless bool) *world {
	w := &world{name: fmt.Sprintf("w%d", seed), classless: classless, random: rand.New(rand.NewPCG(seed, 1))}
	w.step("classes", creation{class(w.of("now"))}, creation{class(w.of("late"), waiting)},
		creation{class(w.of("made"), provisioner("example.com/disks"))})
	w.addVolumes(4 + w.random.IntN(5))
	for range 4 + w.random.IntN(5) {
		w.addClaim()
	}
	for range 4 + w.random.IntN(4) {
		w.addTrouble()
	}
	return w
}

func (w *world) step(what string, do ...change) {
	w.steps = append(w.steps, step{fmt.Sprintf("%s: %d %s", w.name, len(w.steps), what), do})
}

func (w *world) of(name string) string { return w.name + "-" + name }

func (w *world) chance(percent int) bool { return w.random.IntN(100) < percent }

func (w *world) className() string {
	names := []string{w.of("now"), w.of("now"), w.of("now"), w.of("now"), w.of("late"), w.of("made")}
	if w.classless {
		names = append(names, "", "")
	}
	return names[w.random.IntN(len(names))]
}

func (w *world) modes() []corev1.PersistentVolumeAccessMode {
	sets := [][]corev1.PersistentVolumeAccessMode{
		{corev1.ReadWriteOnce}, {corev1.ReadWriteOnce}, {corev1.ReadWriteOnce}, {corev1.ReadWriteOnce},
		{corev1.ReadWriteMany},
		{corev1.ReadWriteOnce, corev1.ReadOnlyMany},
		{corev1.ReadWriteOnce, corev1.ReadWriteMany, corev1.ReadOnlyMany},
	}
	return sets[w.random.IntN(len(sets))]
}

// addVolumes creates volumes of sizes that differ all.
func (w *world) addVolumes(n int) {
	var all []change
	for i, size := range w.random.Perm(n) {
		w.volumes = append(w.volumes, w.of(fmt.Sprintf("v%d", i)))
		all = append(all, creation{volume(w.volumes[i], fmt.Sprintf("%dGi", 2+2*size), w.decideVolume)})
	}
	w.step("volumes", all...)
}

func (w *world) decideVolume(v pv) {
	v.Spec.StorageClassName, v.Spec.AccessModes = w.className(), w.modes()
	v.Labels = map[string]string{"tier": w.tier()}
	if w.chance(15) {
		block(v)
	}
	if w.chance(40) {
		v.Spec.PersistentVolumeSource = corev1.PersistentVolumeSource{CSI: &corev1.CSIPersistentVolumeSource{Driver: "example.com", VolumeHandle: v.Name}}
		if w.chance(30) {
			v.Spec.VolumeAttributesClassName = ptr("gold")
		}
		if w.chance(50) {
			policy(corev1.PersistentVolumeReclaimDelete)(v)
		}
		if w.chance(30) {
			v.Annotations = map[string]string{provisionedBy: "example.com/disks"}
		}
	}
	if w.chance(20) {
		forClaim(w.of(fmt.Sprintf("c%d", w.random.IntN(6))))(v)
	}
}

func (w *world) tier() string { return []string{"a", "b"}[w.random.IntN(2)] }

// addClaim creates one claim, of a size that no other has. Claims come one at a time, for who comes first is served
// first, and a binder with many workers need not see them in order.
func (w *world) addClaim() {
	name := w.of(fmt.Sprintf("c%d", len(w.claims)))
	made := claim(name, fmt.Sprintf("%dGi", 1+2*w.random.IntN(7)), w.decideClaim)
	w.claims = append(w.claims, made)
	w.step("claim "+name, creation{made})
}

func (w *world) decideClaim(c pvc) {
	if name := w.className(); name != "" || w.chance(50) {
		c.Spec.StorageClassName = &name
	}
	c.Spec.AccessModes = w.modes()[:1]
	if w.chance(15) {
		c.Spec.VolumeMode = ptr(corev1.PersistentVolumeBlock)
	}
	if w.chance(20) {
		c.Spec.Selector = &metav1.LabelSelector{MatchLabels: map[string]string{"tier": w.tier()}}
	}
	if w.chance(10) {
		c.Spec.VolumeAttributesClassName = ptr("gold")
	}
	if w.chance(20) {
		c.Spec.VolumeName = w.someVolume()
	}
}

func (w *world) someVolume() string { return w.volumes[w.random.IntN(len(w.volumes))] }

// addTrouble deletes something, brings it back, or changes it.
func (w *world) addTrouble() {
	c, v := w.claims[w.random.IntN(len(w.claims))], w.someVolume()
	switch w.random.IntN(9) {
	case 0, 1:
		w.step("delete "+c.Name, deletion{obj.KeyOf(c)})
	case 2:
		w.step("delete "+v, deletion{obj.VolumeKey(v)})
	case 3:
		w.step("delete "+c.Name, deletion{obj.KeyOf(c)})
		w.step("recreate "+c.Name, creation{c})
	case 4:
		w.step("open "+v, opening{v})
	case 5:
		w.step("delete "+c.Name, deletion{obj.KeyOf(c)})
		w.step("open "+v, opening{v})
	case 6:
		pod := w.of("p" + c.Name)
		w.step("pod for "+c.Name, creation{bindingtest.Pod(ns, pod, "node", c.Name)})
		w.step("delete "+c.Name, deletion{obj.KeyOf(c)})
		w.step("delete "+pod, deletion{bindingtest.PodKey(ns, pod)})
	case 7, 8:
		w.step("destroy "+v, destruction{obj.VolumeKey(v)})
	}
}
