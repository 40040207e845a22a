package model_test

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/pvbind/pvbind/binding/decision"
	"github.com/pvbind/pvbind/binding/hooks"
	. "github.com/pvbind/pvbind/binding/internal/testkit"
	"github.com/pvbind/pvbind/binding/obj"
)

var (
	pairLags = []obj.Kind{obj.KindVolume, obj.KindClaim}
	allLag   = []obj.Kind{obj.KindVolume, obj.KindClaim, obj.KindPod}
)

const onePair = `
	PV  CAPACITY
	x   1Gi

	PVC        REQUEST  CLASS
	default/a  1Gi      ""
`

// What people do to a claim and a volume.
var (
	claimComesAndGoes  = actions("delete pvc/default/a", "remove pvc/default/a", "create pvc/default/a")
	volumeComesAndGoes = actions("delete pv/x", "remove pv/x", "create pv/x")
	reservations       = actions("set pv/x CLAIM=default/a", "set pv/x CLAIM=-", "set pv/x CLAIM=default/a:{pvc/default/a}")
	annotationsGo      = actions("annotate pv/x "+BoundBy+"-", "annotate pvc/default/a "+BoundBy+"-", "annotate pvc/default/a "+Completed+"-")
	policyChanges      = actions("set pv/x POLICY=Delete", "set pv/x POLICY=Recycle", "set pv/x POLICY=Retain")
)

func actions(texts ...string) (all []userAction) {
	for _, text := range texts {
		all = append(all, userAction{text: text})
	}
	return all
}

func anyOf(parts ...[]userAction) (all []userAction) {
	for _, part := range parts {
		all = append(all, part...)
	}
	return all
}

// modelWorld is what a model is about, and its bounds.
type modelWorld struct {
	name          string
	rules         decision.Options
	tables        string            // all objects that there can be, as in a scenario
	absent        []string          // of those, the ones that do not exist at first
	wantErrors    map[string]string // objects of which the sync has to end with an error, with its beginning (X7)
	provisionable []string          // names of volumes that a provisioner may make
	actionTexts   []userAction
	leaders       int
	workers       int        // syncs at once in one controller
	people        uint8      // actions in one run
	faults        uint8      // in one run
	pauses        uint8      // of a leader, so long that another takes over
	lies          uint8      // reads that are told NotFound though the object is there
	travel        travel     // whether the server may be restored
	long          [2]uint8   // actions and faults in a long run, in place of these
	lags          []obj.Kind // the kinds of which caches lag
	settledFirst  bool
	backedUpFirst bool // before it settles
	whileCalled   bool // it is restored only while a leader is in a call of a hook, which ends at any time, and the leader with it
	large         bool // of these, an ordinary run explores one
	troubled      bool // it counts for the coverage of troubles
	onlyFull      bool // too many states for any but a full or a long run
	onlyLong      bool // too many states for any but a long run
	limit         int  // of states; zero: none
	start         []string
	sabotage      sabotage // what is broken on purpose
}

// modelWorlds returns worlds that are small enough to be explored to the last state. Names count in the order of decisions, so that worlds
// of two like objects are worlds of their own. What long runs may do beyond is in the last field.
func modelWorlds() []modelWorld {
	everything := anyOf(claimComesAndGoes, volumeComesAndGoes, reservations, annotationsGo, policyChanges)
	return append(troubledWorlds(), []modelWorld{
		{name: "a pair, an action and a fault", large: true, tables: onePair, leaders: 1, workers: 2, lags: pairLags,
			people: 1, faults: 1, long: [2]uint8{1, 2}, actionTexts: everything},
		{name: "a pair, two actions", tables: onePair, leaders: 1, workers: 2, lags: pairLags,
			people: 2, long: [2]uint8{2, 1}, actionTexts: anyOf(claimComesAndGoes, reservations)},
		{name: "a bound pair, two actions and a fault", large: true, tables: onePair, settledFirst: true, leaders: 1, workers: 2, lags: pairLags,
			people: 2, faults: 1, long: [2]uint8{3, 1}, actionTexts: everything},
		{name: "a pair and two leaders", large: true, onlyFull: true, tables: onePair, leaders: 2, workers: 1, lags: pairLags,
			long: [2]uint8{1, 0}, actionTexts: anyOf(claimComesAndGoes, reservations)},
		{name: "a bound pair, two leaders and an action", tables: onePair, settledFirst: true, leaders: 2, workers: 1, lags: pairLags,
			people: 1, long: [2]uint8{2, 0}, actionTexts: everything},
		{name: "two leaders and a claim that comes again", tables: onePair, settledFirst: true, leaders: 2, workers: 1, lags: pairLags,
			people: 2, long: [2]uint8{2, 1}, actionTexts: actions("remove pvc/default/a", "create pvc/default/a")},
		{name: "two claims and a volume", tables: twoClaims, leaders: 1, workers: 2, lags: pairLags,
			people: 1, long: [2]uint8{1, 1},
			actionTexts: anyOf(claimComesAndGoes, reservations, actions("set pv/x CLAIM=default/b", "remove pvc/default/b"))},
		{name: "a claim and two volumes", large: true, tables: twoVolumes, leaders: 1, workers: 2, lags: pairLags,
			people: 1, long: [2]uint8{1, 1},
			actionTexts: anyOf(claimComesAndGoes, volumeComesAndGoes, reservations, actions("set pv/y CLAIM=default/a", "set pv/y CLAIM=default/a:{pvc/default/a}"))},
		{name: "an external provisioner", tables: provisioned, absent: []string{"pv/pvc-a"}, leaders: 1, workers: 2, lags: pairLags,
			people: 3, long: [2]uint8{3, 1}, actionTexts: anyOf(claimComesAndGoes, provisionerActs)},
		{name: "a scheduler", large: true, tables: delayedTables, leaders: 1, workers: 2, lags: pairLags,
			people: 2, long: [2]uint8{2, 1}, actionTexts: anyOf(claimComesAndGoes, schedules)},
		{name: "protection and a pod", tables: usedByPod, absent: []string{"pod/default/p"}, settledFirst: true, leaders: 1, workers: 2, lags: allLag,
			rules: recyclerHook, people: 2, faults: 1, long: [2]uint8{3, 1},
			actionTexts: actions("delete pvc/default/a", "create pvc/default/a", "delete pv/x", "create pv/x", "create pod/default/p", "delete pod/default/p")},
		{name: "a volume made again beside kube-controller-manager", tables: recycledForAnother, absent: []string{"pvc/default/a"}, leaders: 1, workers: 1,
			rules: recyclerHook, people: 3, faults: 1, long: [2]uint8{4, 1},
			actionTexts: anyOf(sinceAnnounced(actions("delete pv/x", "set pv/x POLICY=Retain")), actions("unprotect pv/x", "create pv/x"))},
		{name: "a bound pair and a tenant who forges", tables: namesVolume, settledFirst: true, leaders: 1, workers: 2, lags: pairLags,
			people: 3, long: [2]uint8{4, 1}, actionTexts: actions("annotate pvc/default/a "+Completed+"=yes", "annotate pvc/default/b "+Completed+"-", "set pv/x CLAIM=-")},
		{name: "a claim that names its volume", tables: namesVolume, leaders: 1, workers: 2, lags: pairLags,
			people: 1, long: [2]uint8{1, 1},
			actionTexts: actions("remove pvc/default/b", "create pvc/default/b", "remove pvc/default/a", "set pv/x CAPACITY=5Gi", "set pv/x CLAIM=default/a", "set pv/x CLAIM=-")},
		{name: "a bad class", tables: badClass, leaders: 1, workers: 2, lags: pairLags, wantErrors: map[string]string{"pvc/default/a": `storageclass/bad: volumeBindingMode`},
			people: 2, long: [2]uint8{2, 1}, actionTexts: anyOf(actions("remove pvc/default/a", "create pvc/default/a", "remove pvc/default/b"), volumeComesAndGoes)},
		{name: "a provisioner of our own", large: true, tables: ownProvisioner, absent: []string{"pv/x"}, provisionable: []string{"pvc-a.1", "pvc-a.2"}, leaders: 1, workers: 2, lags: pairLags,
			rules: ownHooks, people: 1, faults: 1, long: [2]uint8{2, 1},
			actionTexts: anyOf(actions("delete pvc/default/a", "create pvc/default/a", "create pv/x"), madeVolumeChanges)},
		{name: "a provisioned claim", tables: ownProvisioner, absent: []string{"pv/x"}, provisionable: []string{"pvc-a.1", "pvc-a.2"}, settledFirst: true, leaders: 1, workers: 2, lags: pairLags,
			rules: ownHooks, people: 2, long: [2]uint8{2, 1},
			actionTexts: anyOf(actions("delete pvc/default/a", "create pvc/default/a"), madeVolumeChanges)},
		{name: "a provisioned claim and two leaders", large: true, onlyFull: true, tables: ownProvisioner, absent: []string{"pv/x"}, provisionable: []string{"pvc-a.1"}, settledFirst: true, leaders: 2, workers: 1, lags: pairLags,
			rules: ownHooks, people: 1, long: [2]uint8{1, 0}, actionTexts: actions("delete pvc/default/a", "set pv/pvc-{pvc/default/a#1} POLICY=Retain")},
		{name: "a provisioner and two leaders", large: true, tables: ownProvisioner, absent: []string{"pv/x"}, provisionable: []string{"pvc-a.1"}, leaders: 2, workers: 1, lags: pairLags,
			rules: ownHooks, actionTexts: actions("delete pvc/default/a")}, // with the action, P2 admits that storage is left behind
		{name: "a recycler, a claim that waits and two leaders", large: true, tables: recycledForAnother, absent: []string{"pvc/default/a"}, leaders: 2, workers: 1,
			rules: recyclerOnly, pauses: 1},
		{name: "storage that is reclaimed", tables: onePair, settledFirst: true, leaders: 1, workers: 2, lags: pairLags,
			rules: sourceHooks, people: 2, faults: 1, long: [2]uint8{3, 1}, actionTexts: anyOf(actions("delete pvc/default/a", "create pvc/default/a", "delete pv/x"), policyChanges)},
		{name: "attached storage that is reclaimed", tables: attached, absent: []string{"va/x"}, settledFirst: true, leaders: 1, workers: 1,
			lags: []obj.Kind{obj.KindVolume, obj.KindAttachment}, rules: sourceHooks, people: 3, faults: 1, long: [2]uint8{4, 1},
			actionTexts: append(actions("delete pvc/default/a", "delete va/x"), userAction{text: "create va/x", when: volumeIs("x", corev1.VolumeBound)})},
	}...)
}

// Controllers that make and delete storage themselves protect what is in use too, or it would never go.
var (
	ownHooks = decision.Options{Protection: decision.ProtectionOn, Hooks: hooks.Names{
		Provisioners: sets.New("own.example.com"), Deleters: sets.New("own.example.com")}}
	recyclerOnly = decision.Options{Hooks: hooks.Names{Recyclers: sets.New("hostPath")}}
	recyclerHook = decision.Options{Protection: decision.ProtectionOn, Hooks: hooks.Names{Recyclers: sets.New("hostPath")}}
	sourceHooks  = decision.Options{Protection: decision.ProtectionOn, Hooks: hooks.Names{
		SourceDeleters: sets.New("hostPath"), Recyclers: sets.New("hostPath")}}
	madeVolumeChanges = actions("delete pv/pvc-{pvc/default/a#1}", "set pv/pvc-{pvc/default/a#1} POLICY=Retain")
)

const (
	namesVolume = `
		PV  CAPACITY
		x   1Gi

		PVC        REQUEST  CLASS  VOLUME
		default/a  5Gi      ""     x

		PVC        REQUEST  CLASS
		default/b  1Gi      ""
	`
	badClass = `
		SC   PROVISIONER      BINDING  POLICY  UID
		bad  csi.example.com  Later    Delete  bad.1

		PV  CAPACITY
		x   1Gi

		PVC        REQUEST  CLASS
		default/a  1Gi      bad
		default/b  1Gi      ""
	`
	ownProvisioner = `
		SC   PROVISIONER
		own  own.example.com

		PV  CAPACITY  CLASS
		x   1Gi       own

		PVC        REQUEST  CLASS
		default/a  1Gi      own
	`
	twoClaims = `
		PV  CAPACITY
		x   1Gi

		PVC        REQUEST  CLASS
		default/a  1Gi      ""
		default/b  1Gi      ""
	`
	twoVolumes = `
		PV  CAPACITY
		x   1Gi
		y   2Gi

		PVC        REQUEST  CLASS
		default/a  1Gi      ""
	`
	provisioned = `
		SC    PROVISIONER
		fast  csi.example.com

		PV     CAPACITY  CLASS  POLICY  CLAIM                         ANNOTATIONS
		pvc-a  1Gi       fast   Delete  default/a:{pvc/default/a#1}   ` + ProvisionedBy + `=csi.example.com

		PVC        REQUEST  CLASS
		default/a  1Gi      fast
	`
	delayedTables = `
		SC    BINDING               PROVISIONER
		late  WaitForFirstConsumer  kubernetes.io/no-provisioner

		PV  CAPACITY  CLASS
		x   1Gi       late
		y   1Gi       late

		PVC        REQUEST  CLASS
		default/a  1Gi      late
	`
	attached = `
		PV  CAPACITY  POLICY
		x   1Gi       Delete

		PVC        REQUEST  CLASS
		default/a  1Gi      ""

		VA  VOLUME  NODE
		x   x       node
	`
	recycledForAnother = `
		PV  CAPACITY  POLICY   CLAIM           ANNOTATIONS
		x   1Gi       Recycle  default/a:gone  ` + BoundBy + `

		PVC        REQUEST  CLASS
		default/a  1Gi      ""
		default/b  1Gi      ""
	`
	usedByPod = `
		PV  CAPACITY  POLICY
		x   1Gi       Recycle

		PVC        REQUEST  CLASS
		default/a  1Gi      ""

		POD        NODE   CLAIMS
		default/p  node   a
	`
)

var (
	// provisionerActs is what a provisioner does: it makes a volume for the claim that it was asked for, though that may be
	// gone or another by now, and deletes it once it is Released.
	provisionerActs = []userAction{
		{text: "create pv/pvc-a", when: claimAsks},
		{text: "remove pv/pvc-a", when: volumeIs("pvc-a", corev1.VolumeReleased)},
		{text: "annotate pvc/default/a " + Completed + "-"},
	}
	// schedules is what a scheduler does: it sets a volume aside, or asks for one to be made.
	schedules = []userAction{
		{text: "set pv/x CLAIM=default/a:{pvc/default/a} ANNOTATIONS=" + BoundBy, when: claimIsUnbound("a")},
		{text: "set pv/y CLAIM=default/a:{pvc/default/a} ANNOTATIONS=" + BoundBy, when: claimIsUnbound("a")},
		{text: "annotate pvc/default/a " + SelectedNode + "=node", when: claimIsUnbound("a")},
	}
)
