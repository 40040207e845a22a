package reclaim

import (
	"encoding/json"
	"reflect"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
)

func TestSourceName(t *testing.T) {
	for want, source := range map[string]corev1.PersistentVolumeSource{
		"":                     {},
		"awsElasticBlockStore": {AWSElasticBlockStore: &corev1.AWSElasticBlockStoreVolumeSource{}},
		"cephfs":               {CephFS: &corev1.CephFSPersistentVolumeSource{}},
		"csi":                  {CSI: &corev1.CSIPersistentVolumeSource{}},
		"hostPath":             {HostPath: &corev1.HostPathVolumeSource{}},
		"local":                {Local: &corev1.LocalVolumeSource{}},
		"nfs":                  {NFS: &corev1.NFSVolumeSource{}},
		"storageos":            {StorageOS: &corev1.StorageOSPersistentVolumeSource{}},
	} {
		t.Run("R3 "+want, func(t *testing.T) {
			volume := &corev1.PersistentVolume{Spec: corev1.PersistentVolumeSpec{PersistentVolumeSource: source}}
			assert.Equal(t, want, SourceName(volume))
		})
	}
}

// Every source that the API knows has the name under which it is written in JSON,
// those of later Kubernetes versions too.
func TestSourceNameIsTheJSONName(t *testing.T) {
	fields := reflect.TypeFor[corev1.PersistentVolumeSource]()
	for i := range fields.NumField() {
		t.Run("R3 "+fields.Field(i).Name, func(t *testing.T) {
			volume := &corev1.PersistentVolume{}
			field := reflect.ValueOf(&volume.Spec.PersistentVolumeSource).Elem().Field(i)
			field.Set(reflect.New(field.Type().Elem()))

			written, err := json.Marshal(volume.Spec.PersistentVolumeSource)
			require.NoError(t, err)
			var names map[string]any
			require.NoError(t, json.Unmarshal(written, &names))
			require.Len(t, names, 1)
			assert.Contains(t, names, SourceName(volume))
		})
	}
}
