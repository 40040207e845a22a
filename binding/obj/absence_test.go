package obj_test

import (
	"errors"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/pvbind/pvbind/binding/bindingtest"
	"github.com/pvbind/pvbind/binding/obj"
)

// V3: what a list says of an object that a read has not found.
func TestV3AnAbsenceIsConfirmed(t *testing.T) {
	key, notFound := obj.ClaimKey("shop", "orders"), apierrors.NewNotFound(corev1.Resource("persistentvolumeclaims"), "orders")
	asOf := func(version, next string) *corev1.PersistentVolumeClaimList {
		return &corev1.PersistentVolumeClaimList{ListMeta: metav1.ListMeta{ResourceVersion: version, Continue: next}}
	}
	claim, other := bindingtest.Claim("shop", "orders", "1Gi"), bindingtest.Claim("bank", "orders", "1Gi")
	var none []*corev1.PersistentVolumeClaim

	found, err := obj.Confirm(key, notFound, asOf("7", ""), []*corev1.PersistentVolumeClaim{other, claim}, nil)
	require.NoError(t, err, "it was there: the read had an old reply")
	assert.Same(t, claim, found)

	found, err = obj.Confirm(key, notFound, asOf("7", ""), []*corev1.PersistentVolumeClaim{other}, nil)
	assert.True(t, obj.IsAbsent(err, key), "%v", err)
	assert.Equal(t, "7", obj.AbsentAsOf(err))
	assert.Nil(t, found)
	assert.Empty(t, obj.AbsentAsOf(notFound), "the read alone says nothing of that, and stays as it was")
	assert.Empty(t, obj.AbsentAsOf(nil))

	_, err = obj.Confirm(key, notFound, asOf("7", "more"), none, nil)
	require.ErrorContains(t, err, "is not whole")
	_, err = obj.Confirm(key, notFound, asOf("", ""), none, nil)
	require.ErrorContains(t, err, "is no list")
	for _, incomparable := range []string{"0", "01", "v1"} {
		_, err = obj.Confirm(key, notFound, asOf(incomparable, ""), none, nil)
		require.ErrorIs(t, err, notFound)
		assert.Empty(t, obj.AbsentAsOf(err), "%q confirms nothing", incomparable)
	}
	_, err = obj.Confirm(key, notFound, asOf("7", ""), none, errors.New("no rights"))
	assert.False(t, obj.IsAbsent(err, key), "%v", err)
	require.ErrorContains(t, err, "no rights")
}
