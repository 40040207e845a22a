package e2e

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	configv1 "k8s.io/kube-scheduler/config/v1"

	"github.com/pvbind/pvbind/examples/cluster/clustertest"
	"github.com/pvbind/pvbind/examples/cluster/controlplane"
)

// long reports whether this run is one by hand, which takes its time.
func long() bool { return os.Getenv("PVBIND_MODE") == "long" }

// seedsOf returns the seeds of a test: so many, or the one that PVBIND_SEED says, to repeat a failure.
func seedsOf(t *testing.T, usual, byHand uint64) (seeds []uint64) {
	t.Helper()
	if text := os.Getenv("PVBIND_SEED"); text != "" {
		seed, err := strconv.ParseUint(text, 10, 64)
		require.NoError(t, err, "PVBIND_SEED")
		return []uint64{seed}
	}
	count := usual
	if long() {
		count = byHand
	}
	for seed := range count {
		seeds = append(seeds, seed)
	}
	return seeds
}

// verdict is what a scheduler says of a pod, and what comes of it.
type verdict struct {
	node   string
	why    string            // if it has none
	scores map[string]string // of the nodes that could be used; none if that was one alone
	could  string            // how many nodes could be used
	got    map[string]string // volumes by claim
}

func (v verdict) String() string {
	if v.node == "" {
		return "Pending: " + v.why
	}
	return fmt.Sprintf("on %s of %s %v with %v", v.node, v.could, v.scores, v.got)
}

// side is one of the two schedulers.
type side struct {
	name    string
	plugin  string
	process *controlplane.Process
}

// startSide starts a scheduler that chooses by what the plugin scores and, where that is the same, by what the pod prefers.
func startSide(t *testing.T, s *scheduler, plugin string) side {
	t.Helper()
	s.flags = []string{"--feature-gates=StorageCapacityScoring=true", "--vmodule=schedule_one=10"}
	profile := &s.config.Profiles[0]
	if profile.Plugins == nil {
		profile.Plugins = &configv1.Plugins{}
	}
	profile.PluginConfig = []configv1.PluginConfig{{Name: plugin, Args: runtime.RawExtension{Raw: []byte(`{"bindTimeoutSeconds": 15}`)}}}
	profile.Plugins.Score = configv1.PluginSet{
		Enabled:  []configv1.Plugin{{Name: plugin, Weight: new(int32(1000))}, {Name: "NodeAffinity", Weight: new(int32(1))}},
		Disabled: []configv1.Plugin{{Name: "*"}},
	}
	return side{s.name, plugin, s.start(t, shared)}
}

// sideBySide is two schedulers with a binder behind them, and what was counted of pods.
type sideBySide struct {
	sides  []side // theirs, ours
	binder *controlplane.Process
	count  map[string]int
}

// Random worlds, each twice on one API server: under kube-scheduler as it comes, and under the one with the plugin. Both find the same nodes
// feasible, score them alike, say the same reasons, and leave the same behind, but where a rule says otherwise.
func TestSideBySide(t *testing.T) {
	theirs, ours := startSide(t, asItComes("theirs"), "VolumeBinding"), startSide(t, withPlugin(t, "ours"), "PVBind")
	s := &sideBySide{[]side{theirs, ours}, startBinder(t, shared), map[string]int{}}
	seeds := seedsOf(t, 30, 500)
	for _, seed := range seeds {
		played := s.play(t, seed, "")
		if played != "" { // a scheduler may not have seen yet what was created last: what is a difference is one again
			t.Logf("again, for %s", played)
			s.count["again"]++
			if played = s.play(t, seed, "again"); played != "" {
				t.Error(played)
			}
		}
	}
	t.Logf("%d worlds: %v", len(seeds), s.count)
}

// play returns a difference that no rule explains. After one that a rule explains, the two worlds are no longer the same.
func (s *sideBySide) play(t *testing.T, seed uint64, again string) (unexplained string) {
	t.Helper()
	planned := planWorld(rand.New(rand.NewPCG(seed, 17)))
	var worlds []*world
	for _, side := range s.sides {
		w := newWorld(t, shared, fmt.Sprintf("%s-%d%s", side.name, seed, again), side.name)
		w.provision()
		defer w.End()
		worlds = append(worlds, w)
		planned.furnish(w)
	}
	for _, w := range worlds {
		w.knows(2 * planned.nodes)
	}
	for number, pod := range planned.pods {
		verdicts := s.schedule(t, planned, number, worlds)
		s.count["pods"]++
		if fmt.Sprint(verdicts[0]) == fmt.Sprint(verdicts[1]) {
			if verdicts[0].node == "" {
				s.count["pods that both leave Pending"]++
			}
			continue
		}
		rule := planned.explain(number, verdicts[0], verdicts[1])
		said := fmt.Sprintf("PVBIND_SEED=%d pod-%d %s\n%+v\ntheirs: %s\nours:   %s", seed, number, rule, pod, verdicts[0], verdicts[1])
		if planned.isLate(number) {
			said += fmt.Sprintf("\n%+v", planned.late)
		}
		if rule == "" {
			return said
		}
		s.count[rule]++
		t.Log(said)
		return ""
	}
	return ""
}

// schedule creates a pod in both worlds, and returns what comes of it. Of one that comes while no binder runs and is rejected that is what was
// said then.
func (s *sideBySide) schedule(t *testing.T, planned plan, number int, worlds []*world) []verdict {
	t.Helper()
	late := planned.isLate(number)
	if late {
		s.binder.Kill()
		for _, w := range worlds {
			w.forget(w.state().pending()) // those that were rejected would be tried again, with the volumes that come
		}
	}
	for _, w := range worlds {
		if late {
			planned.bringLate(w)
		}
		planned.claimsOf(w, number)
	}
	for _, w := range worlds {
		if late {
			w.knows(2 * planned.nodes)
		}
		w.Create(planned.podOf(w, number))
	}
	claims, verdicts := len(planned.pods[number].claims), make([]verdict, len(worlds))
	if late {
		for i, w := range worlds {
			if !w.planned(number, claims) {
				verdicts[i] = w.verdict(number, claims, s.sides[i])
			}
		}
		s.binder = startBinder(t, shared)
	}
	for i, w := range worlds {
		if verdicts[i].got == nil {
			verdicts[i] = w.verdict(number, claims, s.sides[i])
		}
	}
	return verdicts
}

// knows waits until the scheduler knows so many nodes, and none of worlds before: it says how many there are for a pod that fits on none.
func (w *world) knows(nodes int) {
	w.Helper()
	for try := 0; ; try++ {
		pod := w.Pod(fmt.Sprintf("probe-%d", try))
		pod.Spec.NodeSelector[clustertest.Label] = "none"
		w.Create(pod)
		why := w.Unschedulable(pod.Name)
		w.forget([]string{pod.Name})
		if strings.HasPrefix(why, fmt.Sprintf("0/%d nodes are available", nodes)) {
			return
		}
		require.Less(w, try, 1000, why)
	}
}

// forget deletes pods that have no node.
func (w *world) forget(pods []string) {
	w.Helper()
	for _, pod := range pods {
		require.NoError(w, w.Client.CoreV1().Pods(w.Namespace).Delete(w.Context(), pod, metav1.DeleteOptions{}))
	}
}

// explain returns the rule by which two verdicts differ; "" if there is none. S6: the claims of a pod are assigned together, so more nodes
// may be feasible, or others of their volumes be assigned, with other scores.
func (p plan) explain(number int, theirs, ours verdict) string {
	if p.isLate(number) {
		if rule := p.explainLate(theirs, ours); rule != "" {
			return rule
		}
	}
	unbound := 0
	for _, claim := range p.pods[number].claims {
		if !claim.made && !claim.held {
			unbound++
		}
	}
	switch {
	case unbound < 2:
		return ""
	case theirs.node == "" && ours.node != "":
		return "S6: upstream leaves it Pending, and we place it"
	case theirs.node == "" || ours.node == "":
		return ""
	case theirs.could < ours.could:
		return "S6: more nodes are feasible"
	case theirs.could == ours.could && slices.Equal(slices.Sorted(maps.Keys(theirs.scores)), slices.Sorted(maps.Keys(ours.scores))):
		return "S6: other volumes are assigned"
	}
	return ""
}

// verdict waits for what comes of a pod.
func (w *world) verdict(number, claims int, of side) verdict {
	w.Helper()
	v := verdict{got: map[string]string{}}
	name := fmt.Sprintf("pod-%d", number)
	clustertest.Eventually(w, func() bool {
		pod := w.StoredPod(name)
		v.node, v.why = strings.TrimPrefix(pod.Spec.NodeName, w.Namespace+"-"), clustertest.WhyPending(pod)
		// All claims exist: a scheduler that does not know one yet looks again when it does, as it does where the binder was faster.
		overtaken := strings.HasPrefix(v.why, "running PreBind plugin") && !strings.Contains(v.why, "context deadline exceeded")
		return v.node != "" || v.why != "" && !strings.Contains(v.why, " not found. ") && !overtaken
	}, "%s/%s is scheduled, or not", w.Namespace, name)
	if v.node == "" {
		return v
	}
	v.why = ""
	for c := range claims {
		claim := w.StoredClaim(claimName(number, c))
		v.got[claim.Name] = strings.ReplaceAll(strings.TrimPrefix(claim.Spec.VolumeName, w.Namespace+"-"), string(claim.UID), claim.Name)
	}
	clustertest.Eventually(w, func() bool {
		v.could, v.scores = w.scoresIn(of.process.Output(), name, of.plugin)
		return v.could != ""
	}, "it is in the log")
	return v
}

var scored = regexp.MustCompile(`"Plugin scored node for pod" pod="([^"]*)" plugin="([^"]*)" node="([^"]*)" score=([0-9]*)`)

// scoresIn returns how many nodes were feasible, and what they scored.
func (w *world) scoresIn(log, pod, plugin string) (could string, scores map[string]string) {
	scores = map[string]string{}
	key := w.Namespace + "/" + pod
	for line := range strings.Lines(log) {
		if !strings.Contains(line, `pod="`+key+`"`) {
			continue
		}
		if _, count, bound := strings.Cut(line, " feasibleNodes="); bound {
			could = strings.TrimSpace(count)
		}
		if found := scored.FindStringSubmatch(line); found != nil {
			node := strings.TrimPrefix(found[3], w.Namespace+"-")
			if found[2] == plugin {
				scores[node] = found[4]
			} else if scores[node] == "" {
				scores[node] = "0"
			}
		}
	}
	return could, scores
}
