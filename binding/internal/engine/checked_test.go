package engine_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/pvbind/pvbind/binding/bindingtest"
	"github.com/pvbind/pvbind/binding/decision"
	"github.com/pvbind/pvbind/binding/internal/engine"
	. "github.com/pvbind/pvbind/binding/internal/testkit"
	"github.com/pvbind/pvbind/binding/obj"
)

// V3, R3, R4, F2: a reply that is not whole is an error, and nothing besides that.
func TestV3AReplyIsCheckedByWhatWasAskedFor(t *testing.T) {
	read := func(key obj.Key) decision.Action { return decision.Action{Kind: decision.Read, Key: key} }
	pods, attachments := read(obj.PodsKey("default")), read(obj.AttachmentsKey())
	pod, attached := bindingtest.Pod("default", "till", ""), bindingtest.Attachment("a", "node")
	metadata := metav1.ObjectMeta{Namespace: "default", Name: "data", UID: "uid-of-nobody", ResourceVersion: "9"}
	for _, test := range []struct {
		name   string
		action decision.Action
		reply  engine.Reply
		want   string // "": it is one
	}{
		{"a claim", read(DataKey), engine.Reply{Object: KnownClaim()}, ""},
		{"another claim", read(obj.ClaimKey("default", "other")), engine.Reply{Object: KnownClaim()}, "is not pvc/default/other"},
		{"the metadata of a claim", read(DataKey), engine.Reply{Object: BareObject(DataKey)}, "is not whole"},
		{"a write", decision.Action{Kind: decision.UpdateClaim, Claim: KnownClaim()}, engine.Reply{Object: BareObject(DataKey)}, "is not whole"},
		{"an error", read(DataKey), engine.Reply{Err: ErrNotFound}, ErrNotFound.Error()},
		{"no pods", pods, engine.Reply{}, ""},
		{"pods", pods, engine.Reply{Pods: []*corev1.Pod{pod}}, ""},
		{"a pod of another namespace", pods, engine.Reply{Pods: []*corev1.Pod{pod, bindingtest.Pod("bank", "till", "")}}, "namespace \"bank\""},
		{"the metadata of a pod", pods, engine.Reply{Pods: []*corev1.Pod{pod, {ObjectMeta: metadata}}}, "is not whole"},
		{"attachments", attachments, engine.Reply{Attachments: []*storagev1.VolumeAttachment{attached}}, ""},
		{"the metadata of one", attachments, engine.Reply{Attachments: []*storagev1.VolumeAttachment{{ObjectMeta: metav1.ObjectMeta{Name: "a"}}}}, "is not whole"},
	} {
		t.Run(test.name, func(t *testing.T) {
			got := test.reply.Checked(test.action)
			if test.want == "" {
				require.NoError(t, got.Err)
				assert.Equal(t, test.reply, got)
				return
			}
			require.ErrorContains(t, got.Err, test.want)
			assert.Equal(t, engine.Reply{Err: got.Err}, got)
		})
	}
}
