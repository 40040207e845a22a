package storageclass

import (
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func TestIsDefault(t *testing.T) {
	values := []string{"true", "True", "1", "false", "", "absent"}
	for _, current := range values {
		for _, beta := range values {
			t.Run("C2 current "+current+", beta "+beta, func(t *testing.T) {
				class := &storagev1.StorageClass{}
				class.Annotations = map[string]string{}
				if current != "absent" {
					class.Annotations["storageclass.kubernetes.io/is-default-class"] = current
				}
				if beta != "absent" {
					class.Annotations["storageclass.beta.kubernetes.io/is-default-class"] = beta
				}
				assert.Equal(t, current == "true" || beta == "true", IsDefault(class))
			})
		}
	}
	assert.False(t, IsDefault(&storagev1.StorageClass{}), "C2 without annotations")
}

// class returns a class created so many seconds after a fixed moment, marked as
// default if it has an annotation.
func class(name string, second int, annotation string) *storagev1.StorageClass {
	class := &storagev1.StorageClass{}
	class.Name = name
	class.CreationTimestamp = metav1.NewTime(time.Unix(1_700_000_000+int64(second), 0))
	if annotation != "" {
		class.Annotations = map[string]string{annotation: "true"}
	}
	return class
}

func TestDefault(t *testing.T) {
	unborn := class("unborn", 0, IsDefaultAnnotation)
	unborn.CreationTimestamp = metav1.Time{}

	for _, test := range []struct {
		name    string
		classes []*storagev1.StorageClass
		want    string
	}{
		{"C2 no classes", nil, ""},
		{"C2 none marked", []*storagev1.StorageClass{class("a", 1, ""), class("b", 2, "")}, ""},
		{"C2 the one marked", []*storagev1.StorageClass{class("a", 1, IsDefaultAnnotation), class("b", 2, "")}, "a"},
		{"C2 the beta mark counts as much", []*storagev1.StorageClass{
			class("a", 1, IsDefaultAnnotation), class("b", 2, BetaIsDefaultAnnotation)}, "b"},
		{"C2 newest first", []*storagev1.StorageClass{
			class("a", 1, IsDefaultAnnotation), class("b", 3, IsDefaultAnnotation), class("c", 2, IsDefaultAnnotation)}, "b"},
		{"C2 then by name", []*storagev1.StorageClass{
			class("c", 3, IsDefaultAnnotation), class("b", 3, IsDefaultAnnotation), class("a", 1, IsDefaultAnnotation)}, "b"},
		{"C2 without a creation time is oldest", []*storagev1.StorageClass{unborn, class("z", 0, IsDefaultAnnotation)}, "z"},
		{"C2 one without a creation time", []*storagev1.StorageClass{unborn}, "unborn"},
	} {
		t.Run(test.name, func(t *testing.T) {
			forAllOrders(test.classes, func(classes []*storagev1.StorageClass) {
				got := Default(classes)
				if test.want == "" {
					assert.Nil(t, got)
					return
				}
				require.NotNil(t, got)
				assert.Equal(t, test.want, got.Name)
			})
		})
	}
}

// forAllOrders calls check with every permutation of the classes.
func forAllOrders(classes []*storagev1.StorageClass, check func([]*storagev1.StorageClass)) {
	var permute func(fixed int, order []*storagev1.StorageClass)
	permute = func(fixed int, order []*storagev1.StorageClass) {
		if fixed == len(order) {
			check(slices.Clone(order))
			return
		}
		for i := fixed; i < len(order); i++ {
			order[fixed], order[i] = order[i], order[fixed]
			permute(fixed+1, order)
			order[fixed], order[i] = order[i], order[fixed]
		}
	}
	permute(0, slices.Clone(classes))
}

func TestWaitsForFirstConsumer(t *testing.T) {
	withMode := func(mode storagev1.VolumeBindingMode) *storagev1.StorageClass {
		return &storagev1.StorageClass{ObjectMeta: metav1.ObjectMeta{Name: "gold"}, VolumeBindingMode: &mode}
	}
	invalid := "storageclass/gold: volumeBindingMode: neither Immediate nor WaitForFirstConsumer"
	for _, test := range []struct {
		name  string
		class *storagev1.StorageClass
		waits bool
		err   string
	}{
		{"M11 a missing class is Immediate", nil, false, ""},
		{"M11 Immediate", withMode(storagev1.VolumeBindingImmediate), false, ""},
		{"M11 WaitForFirstConsumer", withMode(storagev1.VolumeBindingWaitForFirstConsumer), true, ""},
		{"M11 X7 no mode", class("gold", 0, ""), false, invalid},
		{"M11 X7 empty mode", withMode(""), false, invalid},
		{"M11 X7 unknown mode", withMode("Later"), false, invalid},
	} {
		t.Run(test.name, func(t *testing.T) {
			waits, err := WaitsForFirstConsumer(test.class)
			assert.Equal(t, test.waits, waits)
			if test.err == "" {
				assert.NoError(t, err)
				return
			}
			assert.EqualError(t, err, test.err)
		})
	}
}

func TestProvisioners(t *testing.T) {
	for _, test := range []struct {
		provisioner string
		provisions  bool
		inTree      bool
	}{
		{"", false, false},
		{"kubernetes.io/no-provisioner", false, true},
		{"kubernetes.io/aws-ebs", true, true},
		{"kubernetes.io/", true, true},
		{"ebs.csi.aws.com", true, false},
		{"example.com/kubernetes.io/nfs", true, false},
		{"notkubernetes.io/nfs", true, false},
		{"kubernetes.io", true, false},
	} {
		t.Run("P1 "+test.provisioner, func(t *testing.T) {
			assert.Equal(t, test.provisions, Provisions(&storagev1.StorageClass{Provisioner: test.provisioner}))
			assert.Equal(t, test.inTree, InTree(test.provisioner))
		})
	}
	assert.False(t, Provisions(nil), "P1 a class that does not exist")
}
