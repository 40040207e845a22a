package reclaim_test

import (
	"fmt"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"

	"github.com/pvbind/pvbind/binding/obj"
	"github.com/pvbind/pvbind/reclaim"
)

// R8: a person, or whoever may write volumes or the claim, has written the annotation.
func TestR8WhatAnAnnouncementSays(t *testing.T) {
	for name, test := range map[string]struct {
		text string
		want reclaim.Announcement
	}{
		"all of it":                 {`{"by":"a","token":7,"seconds":120}`, reclaim.Announcement{By: "a", Token: 7, Seconds: 120}},
		"done":                      {`{"by":"a","token":7,"done":true}`, reclaim.Announcement{By: "a", Token: 7, Done: true}},
		"of a later version":        {`{"by":"a","token":7,"more":{}}`, reclaim.Announcement{By: "a", Token: 7}},
		"nobody's":                  {`{"token":7}`, reclaim.Announcement{Token: 7}},
		"the largest token":         {`{"token":9223372036854775807}`, reclaim.Announcement{Token: math.MaxInt64}},
		"a token too large":         {`{"by":"a","token":9223372036854775808}`, reclaim.Announcement{}},
		"a token too large by far":  {`{"by":"a","token":1e999}`, reclaim.Announcement{}},
		"a fraction":                {`{"by":"a","token":7.5}`, reclaim.Announcement{}},
		"a negative token":          {`{"by":"a","token":-7}`, reclaim.Announcement{}},
		"no token":                  {`{"by":"a"}`, reclaim.Announcement{}},
		"done, without a token":     {`{"by":"a","done":true}`, reclaim.Announcement{}},
		"a token in quotes":         {`{"by":"a","token":"7"}`, reclaim.Announcement{}},
		"another type":              {`[7]`, reclaim.Announcement{}},
		"null":                      {`null`, reclaim.Announcement{}},
		"cut off":                   {`{"by":"a","token":7`, reclaim.Announcement{}},
		"empty":                     {``, reclaim.Announcement{}},
		"as deep as an object goes": {strings.Repeat(`[`, 200_000), reclaim.Announcement{}},
	} {
		t.Run("R8 "+name, func(t *testing.T) {
			volume := &corev1.PersistentVolume{}
			volume.Annotations = map[string]string{reclaim.AnnouncementAnnotation: test.text}
			got, announced := reclaim.AnnouncementOf(volume)
			assert.Equal(t, test.want, got)
			assert.True(t, announced, "it stands for somebody's")
		})
	}
	_, announced := reclaim.AnnouncementOf(&corev1.PersistentVolume{})
	assert.False(t, announced)
}

func TestR8TheTokenGrows(t *testing.T) {
	for name, test := range map[string]struct {
		previous int64
		now      time.Time
		want     int64 // 0: none
	}{
		"with the clock":               {7, time.Unix(3, 4), 3_000_000_004},
		"though the clock is behind":   {5_000_000_000, time.Unix(3, 4), 5_000_000_001},
		"though the clock stands":      {3_000_000_004, time.Unix(3, 4), 3_000_000_005},
		"without a clock":              {0, time.Time{}, 1},
		"though the clock is negative": {0, time.Unix(-3, 0), 1},
		"to the last one":              {math.MaxInt64 - 1, time.Unix(3, 4), math.MaxInt64},
		"and no further":               {math.MaxInt64, time.Unix(3, 4), 0},
	} {
		t.Run("R8 "+name, func(t *testing.T) {
			next, ok := reclaim.Announcement{By: "other", Token: test.previous, Seconds: 9, Done: true}.Next("me", test.now, 90*time.Second)
			require.Equal(t, test.want != 0, ok)
			if ok {
				assert.Equal(t, reclaim.Announcement{By: "me", Token: test.want, Seconds: 90}, next)
			}
		})
	}
}

func TestR8AnAnnouncementIsReadAsItWasWritten(t *testing.T) {
	volume := &corev1.PersistentVolume{}
	for _, announcement := range []reclaim.Announcement{{By: `a "b"/c` + "\n", Token: math.MaxInt64, Seconds: 1}, {Token: 1, Done: true}} {
		before := volume.DeepCopy()
		changed := volume.DeepCopy()
		reclaim.Announce(changed, announcement)
		got, _ := reclaim.AnnouncementOf(changed)
		assert.Equal(t, announcement, got)
		assert.Equal(t, before, volume, "X6")
	}
}

// R8, R7: no operation drops an announcement: what was called may go on. It says so.
func TestR8OperationsKeepTheAnnouncement(t *testing.T) {
	volume := &corev1.PersistentVolume{Spec: corev1.PersistentVolumeSpec{PersistentVolumeReclaimPolicy: corev1.PersistentVolumeReclaimDelete}}
	volume.Name, volume.Status.Phase = "a", corev1.VolumeReleased
	volume.Spec.ClaimRef = &corev1.ObjectReference{Namespace: "default", Name: "data", UID: "uid-1"}
	reclaim.Announce(volume, reclaim.Announcement{By: "another", Token: 1})
	kept := reclaim.SetRetain(volume)
	assert.Equal(t, volume.Annotations, kept.Volume.Annotations)
	assert.Equal(t, reclaim.DataDestroyed, kept.Warnings[0].Risk)

	gone := reclaim.Known{Missing: []obj.Key{obj.ClaimKey("default", "data"), obj.PodsKey("default")}}
	freed, err := reclaim.MakeAvailable(kept.Volume, gone, reclaim.DataDisclosed)
	require.NoError(t, err)
	assert.Equal(t, volume.Annotations, freed.Volume.Annotations)
	assert.Contains(t, fmt.Sprint(freed.Warnings), "remove the annotation "+reclaim.AnnouncementAnnotation)
}
