//go:build unix

package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer"

	"github.com/pvbind/pvbind/examples/internal/dump"
)

const (
	many  = 50_000
	limit = 2.2 // times what it takes to decode the input once
)

// Fifty thousand volumes and as many claims, as kubectl prints them as JSON, a quarter of them bound. The peer is who decodes that and
// does nothing with it, in the same run. Processor time counts, for other tests may be at work on this machine.
func TestLargeClusters(t *testing.T) {
	if testing.Short() {
		t.Skip("it takes some seconds")
	}
	input := largeCluster(many)
	said, spent := explained(t, input)
	ratio := spent.Seconds() / decoded(t, input).Seconds()
	for range 2 {
		if ratio < limit {
			break
		}
		_, again := explained(t, input)
		ratio = min(ratio, again.Seconds()/decoded(t, input).Seconds())
	}
	t.Logf("%.1f times what it takes to decode it", ratio)
	assert.Less(t, ratio, limit)
	assert.Less(t, strings.Count(said, "\n"), 5000, "like claims and like volumes are grouped")
	assert.Contains(t, said, "pvc/ns-1/data-1: NoProvisioner (and ")
	assert.Contains(t, said, fmt.Sprintf("0/%d volumes fit: ", many))
	assert.Contains(t, said, "(and 6249 like it: ", "the Released volumes")
	assert.NotContains(t, said, "== Pairs", "they are all healthy")
}

// explained is what the program prints, and the processor time that it took.
func explained(t *testing.T, input string) (said string, spent time.Duration) {
	var stdout, stderr bytes.Buffer
	env := environment{program: "explain", stdin: strings.NewReader(input), stdout: &stdout, stderr: &stderr, now: time.Now}
	start, before := time.Now(), processorTime(t)
	require.Equal(t, dump.ExitOK, env.run(nil), stderr.String())
	spent = processorTime(t) - before
	t.Logf("%d volumes and %d claims in %d MB: %v, %v of processor time", many, many, len(input)>>20, time.Since(start), spent)
	return stdout.String(), spent
}

// decoded is the processor time that it takes to decode the input into Kubernetes' types.
func decoded(t *testing.T, input string) time.Duration {
	scheme := runtime.NewScheme()
	require.NoError(t, corev1.AddToScheme(scheme))
	decoder := serializer.NewCodecFactory(scheme).UniversalDeserializer()
	before := processorTime(t)
	var list struct{ Items []json.RawMessage }
	require.NoError(t, json.Unmarshal([]byte(input), &list))
	for _, item := range list.Items {
		_, _, err := decoder.Decode(item, nil, nil)
		require.NoError(t, err)
	}
	return processorTime(t) - before
}

func processorTime(t *testing.T) time.Duration {
	var usage syscall.Rusage
	require.NoError(t, syscall.Getrusage(syscall.RUSAGE_SELF, &usage))
	return time.Duration(usage.Utime.Nano() + usage.Stime.Nano())
}

// largeCluster is a dump of n volumes and n claims. Of eight volumes two are bound and one is Released; the claims that
// are not bound request a class that does not exist.
func largeCluster(n int) string {
	var text strings.Builder
	text.WriteString("{\n    \"apiVersion\": \"v1\",\n    \"items\": [\n")
	for i := range n {
		ref, phase := "", "Available"
		switch i % 8 {
		case 0, 4:
			ref, phase = fmt.Sprintf(largeClaimRef, i, i%100, i), "Bound"
		case 1:
			ref, phase = fmt.Sprintf(largeClaimRef, n+i, i%100, n+i), "Released"
		}
		fmt.Fprintf(&text, largeVolume, i, i, i, i%50+1, ref, i, "abc"[i%3], i%5, phase)
	}
	for i := range n {
		mode, marks, class, name, status := "ReadWriteOnce", "", "none-such", "", largePending
		if i%4 == 0 {
			marks, class, name, status = largeMarks, fmt.Sprintf("gp%d", i%5), fmt.Sprintf(largeVolumeName, i), largeBound
		} else if i%3 == 0 {
			mode = "ReadWriteMany"
		}
		fmt.Fprintf(&text, largeClaim, marks, i, i%100, i, i, mode, i%500+40, class, name, status)
		if i < n-1 {
			text.WriteString(",\n")
		}
	}
	text.WriteString("\n    ],\n    \"kind\": \"List\",\n    \"metadata\": {\n        \"resourceVersion\": \"\"\n    }\n}\n")
	return text.String()
}

const largeVolume = `        {
            "apiVersion": "v1",
            "kind": "PersistentVolume",
            "metadata": {
                "annotations": {
                    "pv.kubernetes.io/provisioned-by": "disk.example.com",
                    "volume.kubernetes.io/provisioner-deletion-secret-name": "",
                    "volume.kubernetes.io/provisioner-deletion-secret-namespace": ""
                },
                "creationTimestamp": "2026-03-02T08:41:30Z",
                "finalizers": [
                    "kubernetes.io/pv-protection",
                    "external-attacher/disk-example-com"
                ],
                "name": "pvc-%08x-1111",
                "resourceVersion": "1%d",
                "uid": "%08x-2222-4222-8333-000000000001"
            },
            "spec": {
                "accessModes": [
                    "ReadWriteOnce"
                ],
                "capacity": {
                    "storage": "%dGi"
                },%s
                "csi": {
                    "driver": "disk.example.com",
                    "fsType": "ext4",
                    "volumeAttributes": {
                        "storage.kubernetes.io/csiProvisionerIdentity": "1676374219123-8081-disk.example.com"
                    },
                    "volumeHandle": "vol-%017x"
                },
                "nodeAffinity": {
                    "required": {
                        "nodeSelectorTerms": [
                            {
                                "matchExpressions": [
                                    {
                                        "key": "topology.example.com/zone",
                                        "operator": "In",
                                        "values": [
                                            "zone-%c"
                                        ]
                                    }
                                ]
                            }
                        ]
                    }
                },
                "persistentVolumeReclaimPolicy": "Retain",
                "storageClassName": "gp%d",
                "volumeMode": "Filesystem"
            },
            "status": {
                "lastPhaseTransitionTime": "2026-03-02T08:41:30Z",
                "phase": "%s"
            }
        },
`

const largeClaimRef = `
                "claimRef": {
                    "apiVersion": "v1",
                    "kind": "PersistentVolumeClaim",
                    "name": "data-%d",
                    "namespace": "ns-%d",
                    "resourceVersion": "6015",
                    "uid": "%08x-3333-4222-8333-000000000001"
                },`

const largeMarks = `
                    "pv.kubernetes.io/bind-completed": "yes",
                    "pv.kubernetes.io/bound-by-controller": "yes",`

const largeVolumeName = `,
                "volumeName": "pvc-%08x-1111"`

const largeClaim = `        {
            "apiVersion": "v1",
            "kind": "PersistentVolumeClaim",
            "metadata": {
                "annotations": {%s
                    "example.com/team": "storage"
                },
                "creationTimestamp": "2026-03-02T08:41:30Z",
                "finalizers": [
                    "kubernetes.io/pvc-protection"
                ],
                "labels": {
                    "app": "db"
                },
                "name": "data-%d",
                "namespace": "ns-%d",
                "resourceVersion": "2%d",
                "uid": "%08x-3333-4222-8333-000000000001"
            },
            "spec": {
                "accessModes": [
                    "%s"
                ],
                "resources": {
                    "requests": {
                        "storage": "%dGi"
                    }
                },
                "storageClassName": "%s",
                "volumeMode": "Filesystem"%s
            },
            "status": {%s
            }
        }`

const largePending = `
                "phase": "Pending"`

const largeBound = `
                "accessModes": [
                    "ReadWriteOnce"
                ],
                "capacity": {
                    "storage": "1Gi"
                },
                "phase": "Bound"`
