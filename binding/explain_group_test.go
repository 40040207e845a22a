package binding_test

import (
	"encoding/json"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"

	"github.com/pvbind/pvbind/binding/match"
)

func TestGroupsOfLikeVolumes(t *testing.T) {
	cases := []struct {
		name    string
		terms   match.Terms
		volumes []*corev1.PersistentVolume
		want    string
	}{
		{name: "E1 no volumes", want: "VOLUMES   NEAREST   WHY NOT\n"},
		{name: "E1 by all reasons, the largest group first, each with the values of its nearest",
			volumes: concat(several(1, "both", ofClass("slow"), sized("5Gi")), several(3, "slow", ofClass("slow")),
				several(1, "small", sized("2Gi")), several(1, "smaller", sized("1Gi"))),
			want: `VOLUMES   NEAREST   WHY NOT
3         slow-0    its class: "slow", the claim asks "fast"
2         small-0   its size: 2Gi, the claim asks 10Gi
1         both-0    its size: 5Gi, the claim asks 10Gi; its class: "slow", the claim asks "fast"
`},
		{name: "E1 M14 what fits comes first, and names the one that is chosen",
			volumes: concat(several(3, "slow", ofClass("slow")), several(1, "big", sized("20Gi")), several(1, "fit")),
			want: `VOLUMES   NEAREST   WHY NOT
2         fit-0     chosen
3         slow-0    its class: "slow", the claim asks "fast"
`},
		{name: "E1 M13 some fit, and none is chosen", terms: onNode(match.Terms{}, nodeIn("a")),
			volumes: concat(several(2, "fit"), several(1, "mine", reserved, onlyIn("b"))),
			want: `VOLUMES   NEAREST   WHY NOT
2         fit-0     they fit
1         mine-0    its node affinity: zone In [b], the claim asks node node-a
`},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			assert.Equal(t, c.want, explain(t, c.terms, c.volumes...).Table())
		})
	}
}

// Every volume is in one group, and a table has no line for each of many like volumes.
func TestGroupsAreComplete(t *testing.T) {
	w := world{rand.New(rand.NewPCG(seedOf(t), 3))}
	for range worlds(2_000) {
		request := w.request()
		report, err := match.Explain(request)
		require.NoError(t, err)
		total := 0
		for _, group := range report.Groups() {
			total += group.Volumes
			assert.Len(t, group.Nearest.Mismatches, len(group.Reasons))
		}
		require.Equal(t, len(request.Volumes), total)
		require.Equal(t, len(report.Groups())+1, strings.Count(report.Table(), "\n"))
	}
}

func TestVerdictAsASentence(t *testing.T) {
	report := explain(t, match.Terms{}, fitVolume("pv-a"), fitVolume("pv-b"), fitVolume("pv-c", sized("5Gi")))
	var sentences []string
	for _, verdict := range report.Verdicts {
		sentences = append(sentences, verdict.String())
	}
	assert.Equal(t, []string{"pv-a is chosen", "pv-b fits", "pv-c would fit but for its size: 5Gi, the claim asks 10Gi"}, sentences)
}

func TestReportAsJSON(t *testing.T) {
	report := explain(t, match.Terms{}, fitVolume("pv-a", sized("5Gi"), ofClass("slow")), fitVolume("pv-b"))
	asJSON := func(value any) string {
		text, err := json.Marshal(value)
		require.NoError(t, err)
		return string(text)
	}
	small := `{"volume":"pv-a","link":"Unclaimed","mismatches":[{"reason":"TooSmall","asks":"10Gi","has":"5Gi"},{"reason":"StorageClass","asks":"fast","has":"slow"}]}`
	chosen := `{"volume":"pv-b","link":"Unclaimed","chosen":true}`
	assert.JSONEq(t, `{"claim":"pvc/default/data","chosen":"pv-b","verdicts":[`+small+`,`+chosen+`]}`, asJSON(report), "the volumes themselves are left out")
	assert.JSONEq(t, `{"volumes":2,"fit":1,"chosen":"pv-b","counts":[{"reason":"TooSmall","volumes":1,"largest":"5Gi"}]}`, asJSON(report.Summary()))
	assert.JSONEq(t, `[{"volumes":1,"nearest":`+chosen+`},{"reasons":["TooSmall","StorageClass"],"volumes":1,"nearest":`+small+`}]`, asJSON(report.Groups()))
}
