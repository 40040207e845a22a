package model_test

import (
	"fmt"

	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/pvbind/pvbind/binding/decision"
	"github.com/pvbind/pvbind/binding/hooks"
	"github.com/pvbind/pvbind/binding/internal/judge"
	. "github.com/pvbind/pvbind/binding/internal/testkit"
	"github.com/pvbind/pvbind/binding/obj"
	"github.com/pvbind/pvbind/reclaim"
)

// What tenants and administrators do at any moment, though nobody asked for it.
var (
	forgeries = actions("annotate pvc/default/a "+Completed+"-", "annotate pvc/default/a "+Completed+"=yes", "annotate pvc/default/a "+BoundBy+"-",
		"annotate pvc/default/a "+BoundBy+"=yes", "annotate pvc/default/a "+SelectedNode+"=node", "annotate pvc/default/a "+Provisioner+"=evil.example.com",
		"annotate pvc/default/a "+reclaim.AnnouncementAnnotation+"=soon", "annotate pvc/default/a "+reclaim.AnnouncementAnnotation+"-")
	tenantLetsGo = actions("set pvc/default/a FINALIZERS=-", "remove pvc/default/a")
	tenantsName  = actions("set pvc/default/b VOLUME=x", "annotate pvc/default/b "+Completed+"=yes")
	adminEdits   = anyOf(policyChanges, actions("set pv/x CLAIM=-", "set pv/x CLAIM=default/a", "set pv/x CLAIM=default/a:{pvc/default/a}", "set pv/x CLAIM=default/a:gone",
		"set pv/x FINALIZERS=-", "remove pv/x", "remove pvc/default/a", "annotate pv/x "+BoundBy+"-",
		"annotate pv/x "+reclaim.AnnouncementAnnotation+"-", "annotate pv/x "+reclaim.AnnouncementAnnotation+"=soon"))
	givenToB = actions("set pv/x CLAIM=default/b", "set pv/x CLAIM=default/b:{pvc/default/b}")
)

// life is what happens every day in the worlds of trouble: the life of a claim and its volume, and how it ends.
type life struct {
	name string
	modelWorld
	tenant, admin []userAction
}

func lives() []life {
	ends := actions("delete pvc/default/a")
	made := "pv/pvc-{pvc/default/a#1}"
	ofMade := anyOf(madeVolumeChanges, actions("set "+made+" CLAIM=-", "set "+made+" CLAIM=default/a:gone", "set "+made+" FINALIZERS=-", "remove "+made, "remove pvc/default/a",
		"annotate "+made+" "+reclaim.AnnouncementAnnotation+"=soon", "annotate "+made+" "+BoundBy+"-", "annotate "+made+" "+ProvisionedBy+"-"))
	return []life{
		{name: "Delete", tenant: anyOf(forgeries, tenantLetsGo, tenantsName), admin: anyOf(adminEdits, givenToB),
			modelWorld: modelWorld{tables: deletedPair, rules: sourceHooks, settledFirst: true, actionTexts: ends}},
		{name: "Recycle for another", tenant: anyOf(forgeries, tenantLetsGo, tenantsName), admin: anyOf(adminEdits, givenToB),
			modelWorld: modelWorld{tables: recycledPair, rules: sourceHooks, settledFirst: true, actionTexts: ends}},
		{name: "Retain", tenant: anyOf(forgeries, tenantLetsGo, tenantsName), admin: anyOf(adminEdits, givenToB),
			modelWorld: modelWorld{tables: twoClaims, rules: sourceHooks, settledFirst: true, actionTexts: actions("delete pvc/default/a", "remove pv/x", "set pv/x CLAIM=default/b")}},
		{name: "a provisioned volume", tenant: anyOf(forgeries, tenantLetsGo), admin: ofMade,
			modelWorld: modelWorld{tables: ownProvisioner, absent: []string{"pv/x"}, provisionable: []string{"pvc-a.1"}, rules: ownHooks, settledFirst: true, actionTexts: ends}},
		{name: "a leftover", tenant: anyOf(forgeries, tenantLetsGo, actions("set pvc/default/a VOLUME=x")), admin: ofMade,
			modelWorld: modelWorld{tables: ownProvisioner, absent: []string{"pv/x"}, provisionable: []string{"pvc-a.1"}, rules: ownHooks, actionTexts: ends}},
	}
}

// troubledWorlds returns small worlds in which the life of a claim meets one trouble at a time, whenever it likes to come.
func troubledWorlds() (worlds []modelWorld) {
	for _, l := range lives() {
		for name, meets := range map[string]func(*modelWorld){
			"a fault":      func(w *modelWorld) { w.faults = 1 },
			"a lie":        func(w *modelWorld) { w.lies = 1 },
			"a restore":    func(w *modelWorld) { w.travel = mayBackUp },
			"a long pause": func(w *modelWorld) { w.leaders, w.pauses = 2, 1 },
			"a tenant":     func(w *modelWorld) { w.people, w.actionTexts = 2, anyOf(w.actionTexts, l.tenant) },
			"an admin":     func(w *modelWorld) { w.people, w.actionTexts = 2, anyOf(w.actionTexts, l.admin) },
		} {
			world := l.modelWorld
			world.name = fmt.Sprintf("%s, and %s", l.name, name)
			world.leaders, world.workers, world.people = 1, 1, 1
			meets(&world)
			world.long = [2]uint8{world.people, world.faults}
			world.troubled = true
			world.large = world.leaders > 1
			world.onlyLong = world.leaders > 1 && l.name == "a leftover"
			worlds = append(worlds, world)
		}
	}
	for name, tables := range map[string]string{"Delete": deletedPair, "Recycle": recycledPair} {
		worlds = append(worlds, modelWorld{name: name + ", a fault, and an admin who changes the volume", tables: tables, rules: sourceHooks, settledFirst: true,
			leaders: 1, workers: 1, people: 3, faults: 1, long: [2]uint8{3, 1}, troubled: true, actionTexts: anyOf(actions("delete pvc/default/a"), changesSinceAnnounced())})
	}
	for _, l := range lives()[:2] {
		world := l.modelWorld
		world.name, world.leaders, world.workers, world.people, world.long = l.name+", a restore and a lie", 1, 1, 1, [2]uint8{1, 0}
		world.travel, world.lies, world.troubled = mayBackUp, 1, true
		worlds = append(worlds, world)
	}
	worlds = append(worlds, restoredBesideACall()...)
	return append(worlds, modelWorld{name: "a recycler, two leaders and an admin", tables: recycledForAnother, absent: []string{"pvc/default/a"},
		rules: recyclerOnly, leaders: 2, workers: 1, people: 1, long: [2]uint8{1, 0}, troubled: true, large: true, onlyFull: true,
		actionTexts: actions("set pv/x CLAIM=-")},
		modelWorld{name: "what an earlier controller has left over, two leaders and a long pause", tables: leftBefore, provisionable: []string{"pvc-a.1"},
			rules: deleterOnly, settledFirst: true, leaders: 2, workers: 1, people: 1, pauses: 1, long: [2]uint8{1, 0}, troubled: true, large: true,
			actionTexts: actions("delete pvc/default/a")})
}

// restoredBesideACall returns worlds in which a leader may be paused in a call of a hook while the server is restored to before its
// announcement, and another takes the volume, or the claim, for one that nobody is at work on.
func restoredBesideACall() []modelWorld {
	ends := actions("delete pvc/default/a")
	worlds := []modelWorld{
		{name: "a recycler, two leaders and a restore", tables: recycledForAnother, absent: []string{"pvc/default/a"}, rules: recyclerOnly,
			lags: []obj.Kind{obj.KindVolume}, sabotage: takesAnyToken}, // so that the announcement may not be known, nor the token help
		{name: "a recycler, two leaders and a restore to before the claim", tables: recycledPair, rules: recyclerHook, settledFirst: true, people: 1, actionTexts: ends,
			sabotage: takesAnyToken},
		{name: "a deleter of what was made, two leaders, a long pause and a restore", tables: ownProvisioner, absent: []string{"pv/x"}, provisionable: []string{"pvc-a.1"}, rules: ownHooks,
			people: 1, pauses: 1, actionTexts: ends, onlyLong: true},
	}
	for i := range worlds {
		w := &worlds[i]
		w.leaders, w.workers, w.long = 2, 1, [2]uint8{w.people, 0}
		w.backedUpFirst, w.whileCalled, w.troubled, w.large, w.onlyFull = true, true, true, true, true
	}
	return worlds
}

// changesSinceAnnounced is what an administrator does to a volume for which a deleter or recycler is called, or was.
func changesSinceAnnounced() []userAction {
	return sinceAnnounced(actions("set pv/x POLICY=Retain", "set pv/x POLICY=Recycle", "set pv/x CLAIM=-", "set pv/x CLAIM=default/b", "set pv/x CLAIM=default/b:{pvc/default/b}"))
}

// sinceAnnounced returns the changes, as they are made while an announcement is on the volume.
func sinceAnnounced(changes []userAction) []userAction {
	for i := range changes {
		changes[i].when = func(now *state) bool {
			volume := now.server.volume("x")
			return volume != nil && judge.KeptBack(volume)
		}
	}
	return changes
}

var deleterOnly = decision.Options{Protection: decision.ProtectionOn, Hooks: hooks.Names{Deleters: sets.New("own.example.com")}}

const (
	leftBefore = `
		PVC        REQUEST  CLASS  FINALIZERS                    ANNOTATIONS
		default/a  1Gi      own    pvbind.github.io/provisioning  ` + Provisioner + `=own.example.com,` + BetaProvisioner + `=own.example.com
	`
	deletedPair = `
		PV  CAPACITY  POLICY
		x   1Gi       Delete

		PVC        REQUEST  CLASS
		default/a  1Gi      ""
		default/b  1Gi      ""
	`
	recycledPair = `
		PV  CAPACITY  POLICY
		x   1Gi       Recycle

		PVC        REQUEST  CLASS
		default/a  1Gi      ""
		default/b  1Gi      ""
	`
)
