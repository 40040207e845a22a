package main

import (
	"encoding/json"
	"io"

	"github.com/pvbind/pvbind/binding/decision"
	"github.com/pvbind/pvbind/binding/obj"
)

// report is the answer about a whole cluster. As JSON it has these fields. Of like things the first is reported, and the
// others are named beside it.
type report struct {
	// Claims are those that are not Bound.
	Claims []*claimGroup `json:"claims"`
	// Volumes are those that are Released, Failed, or being deleted.
	Volumes []*volumeGroup `json:"volumes"`
	// Pairs are those of a claim and a volume that are not as they should be.
	Pairs []*pairGroup `json:"pairs"`
}

// claimGroup is a claim that is not Bound, and others like it.
type claimGroup struct {
	decision.Explanation
	// Problem is why nothing can be decided for the claim.
	Problem string `json:"problem,omitempty"`
	// Contenders is how many claims of the input would take the same volume, if more than this one: one of them gets it.
	Contenders int `json:"contenders,omitempty"`
	// Scheduling is why the pods that must be scheduled first have no node.
	Scheduling []podWait `json:"scheduling,omitempty"`
	Alike      []obj.Key `json:"alike,omitempty"`
}

// podWait is a pod without a node.
type podWait struct {
	Pod     string `json:"pod"`
	Message string `json:"message,omitempty"` // what the scheduler said last; "" if it has not seen the pod
	// Volumes is on how many nodes the pod could have its volumes, in the scheduler's form; "" if the input has no nodes.
	Volumes string `json:"volumes,omitempty"`
	// Nodes are those on which it could not, and why.
	Nodes []nodeWait `json:"nodes,omitempty"`
}

// volumeGroup is a volume that nobody can simply use, and others like it.
type volumeGroup struct {
	Volume obj.Key `json:"volume"`
	Phase  string  `json:"phase"`
	Policy string  `json:"reclaimPolicy"`
	// Was is the claim in its claimRef.
	Was obj.Key `json:"claim,omitzero"`
	// Why says what becomes of it by itself.
	Why string `json:"why"`
	// Operations are what a person can do with it.
	Operations []operation `json:"operations,omitempty"`
	// Finalizers keep it, if it is being deleted.
	Finalizers []string `json:"finalizers,omitempty"`
	// Attached are the nodes that it is attached to.
	Attached []string  `json:"attached,omitempty"`
	Alike    []obj.Key `json:"alike,omitempty"`
}

// pairGroup is a pair that is not healthy, and others like it. A pair that a person can repair is a group of its own,
// for each needs a write of its own.
type pairGroup struct {
	decision.PairReport
	// Problem is why no repair can be named, if the claim or the volume is malformed.
	Problem string `json:"problem,omitempty"`
	// Command does the repair, if it is a change that a person can make: it fails if the object has changed meanwhile.
	Command string     `json:"command,omitempty"`
	Alike   []pairName `json:"alike,omitempty"`

	uid string // of the claim
}

// pairName names a claim and a volume; one of them may not exist.
type pairName struct {
	Claim  obj.Key `json:"claim,omitzero"`
	Volume obj.Key `json:"volume,omitzero"`
}

func (c *cluster) report() report {
	return report{Claims: c.explainClaims(), Volumes: c.volumeGroups(), Pairs: c.pairGroups()}
}

// write writes the answer that the options select.
func (c *cluster) write(o options, out io.Writer) error {
	switch {
	case o.claim != (obj.Key{}):
		return c.writeClaim(o, out)
	case o.volume != "":
		return c.writeVolume(o, out)
	case o.format == formatJSON:
		return writeJSON(out, c.report())
	}
	return c.writeText(out)
}

func writeJSON(out io.Writer, value any) error {
	encoder := json.NewEncoder(out)
	encoder.SetIndent("", "  ")
	encoder.SetEscapeHTML(false)
	return encoder.Encode(value)
}
