package e2e

import (
	"context"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/pvbind/pvbind/binding/hooks"
)

// refusing in the name of a class means that the storage of its volumes refuses older tokens (R8).
const refusing = "refusing"

// sharedStorage is storage that several Runners have hooks for. It knows who uses which disk, and notes every call that takes
// effect on one in use. Disks have the names of their volumes.
type sharedStorage struct {
	api api // for the live reads of its own

	mu     sync.Mutex
	disks  map[string]*disk
	tokens map[string]int64 // the largest one, by disk, those that are gone too
	counts map[string]int   // what was done, in words
	crimes []string
}

type disk struct {
	user types.UID // the claim in whose name data is read and written at the moment
	data types.UID // the claim whose data it has
}

func newSharedStorage(a api) *sharedStorage {
	return &sharedStorage{api: a, disks: map[string]*disk{}, tokens: map[string]int64{}, counts: map[string]int{}}
}

// hooksFor are the hooks of the Runner of that name.
func (s *sharedStorage) hooksFor(runner string) hooks.Set {
	h := sharedHooks{s, runner}
	set := hooks.Set{
		Provisioners:   map[string]hooks.Provisioner{},
		Deleters:       map[string]hooks.Deleter{},
		SourceDeleters: map[string]hooks.Deleter{"hostPath": h},
		Recyclers:      map[string]hooks.Recycler{"hostPath": h},
		Timeout:        5 * time.Second,
		MaxConcurrent:  30,
	}
	for _, provisioner := range []string{"example.com/disks", "example.com/" + refusing} {
		set.Provisioners[provisioner], set.Deleters[provisioner] = h, h
	}
	return set
}

// sharedHooks are those of one of the Runners.
type sharedHooks struct {
	*sharedStorage
	runner string
}

func (s sharedHooks) Provision(_ context.Context, request hooks.ProvisionRequest) (*corev1.PersistentVolume, error) {
	takeTime()
	if !s.provision(request.Volume, request.Token) {
		return nil, &hooks.Error{Meaning: hooks.StaleToken}
	}
	s.count("provisioner calls of " + s.runner)
	request.Volume.Spec.HostPath = &corev1.HostPathVolumeSource{Path: "/disks/" + request.Volume.Name}
	return request.Volume, nil
}

func (s sharedHooks) Delete(ctx context.Context, request hooks.ReclaimRequest) error {
	return s.destroy(ctx, "deleter", request, func(name string) { delete(s.disks, name) })
}

func (s sharedHooks) Recycle(ctx context.Context, request hooks.ReclaimRequest) error {
	return s.destroy(ctx, "recycler", request, func(name string) { s.disks[name].data = "" })
}

// destroy is a call that takes some time, takes effect, and then looks at what the server says of volume and claim. Nobody may
// have got the storage by then, for the call is not over.
func (s sharedHooks) destroy(ctx context.Context, hook string, request hooks.ReclaimRequest, effect func(name string)) error {
	takeTime()
	call := fmt.Sprintf("%s of %s with token %d for volume %s of claim %s", hook, s.runner, request.Token, request.Volume.Name, request.Volume.Spec.ClaimRef.UID)
	if !s.takeEffect(hook, call, request, effect) {
		return &hooks.Error{Meaning: hooks.StaleToken}
	}
	takeTime()
	inUse, err := s.inUse(ctx, request.Volume)
	if inUse != "" {
		s.accuse(call + ": " + inUse)
	}
	return err
}

func (s sharedHooks) takeEffect(hook, call string, request hooks.ReclaimRequest, effect func(name string)) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	name := request.Volume.Name
	kind := " on storage that takes any token"
	if strings.HasSuffix(request.Volume.Spec.StorageClassName, refusing) {
		kind = " on storage that refuses older tokens"
	}
	if !s.accepts(request.Volume, request.Token) {
		return false
	}
	s.counts[hook+" calls of "+s.runner+kind]++
	found := s.disks[name]
	if found == nil {
		s.counts["calls for storage that was gone"]++
		return true
	}
	if found.user != "" {
		s.crimes = append(s.crimes, call+": claim "+string(found.user)+" uses it")
	}
	effect(name)
	return true
}

// accepts keeps the largest token of the volume's storage, and reports whether that takes a call with this one.
func (s *sharedStorage) accepts(volume *corev1.PersistentVolume, token int64) bool {
	if strings.HasSuffix(volume.Spec.StorageClassName, refusing) && token < s.tokens[volume.Name] {
		s.counts["calls that were refused"]++
		return false
	}
	s.tokens[volume.Name] = max(s.tokens[volume.Name], token)
	return true
}

// inUse says who has the storage of the volume by what the server says; "" if nobody has.
func (s *sharedStorage) inUse(ctx context.Context, asked *corev1.PersistentVolume) (string, error) {
	volume, err := s.api.CoreV1().PersistentVolumes().Get(ctx, asked.Name, metav1.GetOptions{})
	if err != nil {
		return "", ignoreNotFound(err) // none was stored
	}
	if asked.UID != "" && volume.UID != asked.UID {
		return "it is volume " + string(volume.UID) + " by now", nil
	}
	ref := volume.Spec.ClaimRef
	if ref == nil || ref.UID != asked.Spec.ClaimRef.UID {
		return fmt.Sprintf("the volume has claimRef %v by now", ref), nil
	}
	claim, err := s.api.CoreV1().PersistentVolumeClaims(ref.Namespace).Get(ctx, ref.Name, metav1.GetOptions{})
	if err != nil {
		return "", ignoreNotFound(err)
	}
	if claim.UID == ref.UID && claim.Spec.VolumeName == volume.Name {
		return fmt.Sprintf("its claim exists and is %s", claim.Status.Phase), nil
	}
	return "", nil
}

// add adds a disk by hand, unless there is one of that name. No call is made, and so no token shown.
func (s *sharedStorage) add(volume *corev1.PersistentVolume) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.find(volume.Name)
}

// provision makes or finds the disk of a volume, and reports whether the storage takes the token.
func (s *sharedStorage) provision(volume *corev1.PersistentVolume, token int64) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.accepts(volume, token) {
		return false
	}
	s.find(volume.Name)
	return true
}

func (s *sharedStorage) find(name string) {
	if s.disks[name] == nil {
		s.disks[name] = &disk{}
	}
}

// open has a pod of the claim begin to use the disk of a volume, and write to it.
func (s *sharedStorage) open(volume *corev1.PersistentVolume, claim *corev1.PersistentVolumeClaim) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.counts["claims that used a disk"]++
	switch found := s.disks[volume.Name]; {
	case found == nil:
		s.crimes = append(s.crimes, fmt.Sprintf("claim %s has volume %s, whose disk is gone", claim.UID, volume.Name))
	case found.user != "" || found.data != "":
		s.crimes = append(s.crimes, fmt.Sprintf("claim %s has volume %s, where it finds the data of claim %s, used by %q", claim.UID, volume.Name, found.data, found.user))
	default:
		found.user, found.data = claim.UID, claim.UID
	}
}

// close has it end that, and look whether what it wrote is still there.
func (s *sharedStorage) close(volume *corev1.PersistentVolume, claim *corev1.PersistentVolumeClaim) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if found := s.disks[volume.Name]; found == nil || found.data != claim.UID {
		s.crimes = append(s.crimes, fmt.Sprintf("claim %s has lost its data on volume %s", claim.UID, volume.Name))
	} else {
		found.user = ""
	}
}

func (s *sharedStorage) count(what string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.counts[what]++
}

func (s *sharedStorage) accuse(crime string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.crimes = append(s.crimes, crime)
}

// report returns the counts, line by line, and the crimes.
func (s *sharedStorage) report() (counts map[string]int, lines string, crimes []string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, what := range slices.Sorted(maps.Keys(s.counts)) {
		lines += fmt.Sprintf("\n\t%6d %s", s.counts[what], what)
	}
	return maps.Clone(s.counts), lines, slices.Clone(s.crimes)
}

// takeTime lets a moment pass, and now and then a longer one.
func takeTime() {
	longest := 5 * time.Millisecond
	if rand.IntN(50) == 0 {
		longest = 500 * time.Millisecond
	}
	after(rand.N(longest))
}

// unrecorded returns how many disks there are for which no volume stands.
func (s *sharedStorage) unrecorded(volumes []string) (n int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for name := range s.disks {
		if !slices.Contains(volumes, name) {
			n++
		}
	}
	return n
}
