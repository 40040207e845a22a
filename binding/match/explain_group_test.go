package match_test

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"

	. "github.com/pvbind/pvbind/binding/internal/testkit"
	"github.com/pvbind/pvbind/binding/match"
)

func TestTableGroupsLikeVolumes(t *testing.T) {
	cases := []struct {
		name    string
		terms   match.Terms
		volumes []*corev1.PersistentVolume
		want    string
	}{
		{name: "E1 no volumes", want: "VOLUMES   NEAREST   WHY NOT\n"},
		{name: "E1 by all reasons, the largest group first, each with the values of its nearest",
			volumes: concat(several(1, "both", OfClass("slow"), Sized("5Gi")), several(3, "slow", OfClass("slow")),
				several(1, "small", Sized("2Gi")), several(1, "smaller", Sized("1Gi"))),
			want: `VOLUMES   NEAREST   WHY NOT
3         slow-0    its class: "slow", the claim requests "fast"
2         small-0   its size: 2Gi, the claim requests 10Gi
1         both-0    its size: 5Gi, the claim requests 10Gi; its class: "slow", the claim requests "fast"
`},
		{name: "E1 M14 what fits comes first, and names the one that is chosen",
			volumes: concat(several(3, "slow", OfClass("slow")), several(1, "big", Sized("20Gi")), several(1, "fit")),
			want: `VOLUMES   NEAREST   WHY NOT
2         fit-0     chosen
3         slow-0    its class: "slow", the claim requests "fast"
`},
		{name: "E1 M13 some fit, and none is chosen", terms: OnNode(match.Terms{}, NodeIn("a")),
			volumes: concat(several(2, "fit"), several(1, "mine", PreBound, OnlyIn("b"))),
			want: `VOLUMES   NEAREST   WHY NOT
2         fit-0     they fit
1         mine-0    its node affinity: zone In [b], the claim requests node node-a
`},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			assert.Equal(t, c.want, explain(t, c.terms, c.volumes...).Table())
		})
	}
}

// Every volume is in one row of the table, and all that fail for the same reasons are in the same.
func TestTableIsComplete(t *testing.T) {
	w := NewWorld(rand.NewPCG(SeedOf(t), 3))
	for range Worlds(2_000) {
		request := w.Request()
		report, err := match.Explain(request)
		require.NoError(t, err)
		groups := map[string]bool{}
		for _, verdict := range report.Verdicts {
			groups[fmt.Sprint(reasons(verdict.Mismatches))] = true
		}
		rows := strings.Split(strings.TrimSpace(report.Table()), "\n")[1:]
		require.Len(t, rows, len(groups))
		total := 0
		for _, row := range rows {
			volumes, err := strconv.Atoi(strings.Fields(row)[0])
			require.NoError(t, err)
			total += volumes
		}
		require.Equal(t, len(request.Volumes), total)
	}
}

func TestVerdictAsASentence(t *testing.T) {
	report := explain(t, match.Terms{}, FitVolume("pv-a"), FitVolume("pv-b"), FitVolume("pv-c", Sized("5Gi")))
	var sentences []string
	for _, verdict := range report.Verdicts {
		sentences = append(sentences, verdict.String())
	}
	assert.Equal(t, []string{"pv-a is chosen", "pv-b fits", "pv-c would fit but for its size: 5Gi, the claim requests 10Gi"}, sentences)
}

func TestReportAsJSON(t *testing.T) {
	report := explain(t, match.Terms{}, FitVolume("pv-a", Sized("5Gi"), OfClass("slow")), FitVolume("pv-b"))
	asJSON := func(value any) string {
		text, err := json.Marshal(value)
		require.NoError(t, err)
		return string(text)
	}
	small := `{"volume":"pv-a","claimRef":"None","mismatches":[{"reason":"TooSmall","requested":"10Gi","actual":"5Gi"},{"reason":"StorageClass","requested":"fast","actual":"slow"}]}`
	chosen := `{"volume":"pv-b","claimRef":"None","chosen":true}`
	assert.JSONEq(t, `{"claim":"pvc/default/data","chosen":"pv-b","verdicts":[`+small+`,`+chosen+`]}`, asJSON(report), "the volumes themselves are left out")
	assert.JSONEq(t, `{"volumes":2,"fit":1,"chosen":"pv-b","counts":[{"reason":"TooSmall","volumes":1,"largest":"5Gi"}]}`, asJSON(report.Summary()))
}
