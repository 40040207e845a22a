package main

import (
	"encoding/json"
	"reflect"
	"strings"

	corev1 "k8s.io/api/core/v1"
)

// patchCommand is the kubectl command that makes the one volume of the other, if nobody has changed it meanwhile.
func patchCommand(before, after *corev1.PersistentVolume) string {
	patch := difference(fieldsOf(before), fieldsOf(after))
	metadata, _ := patch["metadata"].(map[string]any)
	if metadata == nil {
		metadata = map[string]any{}
		patch["metadata"] = metadata
	}
	metadata["resourceVersion"] = before.ResourceVersion
	text, err := json.Marshal(patch)
	if err != nil {
		return ""
	}
	return "kubectl patch pv " + before.Name + " --type=merge -p '" + strings.ReplaceAll(string(text), "'", `'\''`) + "'"
}

func fieldsOf(volume *corev1.PersistentVolume) map[string]any {
	var fields map[string]any
	text, err := json.Marshal(volume)
	if err != nil || json.Unmarshal(text, &fields) != nil {
		return nil
	}
	return fields
}

// difference is the merge patch (RFC 7386) that makes after of before.
func difference(before, after map[string]any) map[string]any {
	patch := map[string]any{}
	for key := range before {
		if _, stays := after[key]; !stays {
			patch[key] = nil
		}
	}
	for key, value := range after {
		was, isObject := before[key].(map[string]any)
		is, stillObject := value.(map[string]any)
		switch {
		case reflect.DeepEqual(before[key], value):
		case isObject && stillObject:
			patch[key] = difference(was, is)
		default:
			patch[key] = value
		}
	}
	return patch
}
