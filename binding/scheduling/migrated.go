package scheduling

import (
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"

	"github.com/pvbind/pvbind/binding/match"
)

// CSINodeView is what a View, or the ObjectView of NextForPlan, may implement as well: it tells on which nodes in-tree plugins
// are migrated to CSI drivers. There the zone of an in-tree volume counts, be it only a label of the volume (S3). It requires
// the right to list and watch csinodes. Snapshot implements it.
type CSINodeView interface {
	// CSINode looks up the CSINode of a node; nil if it is not known.
	CSINode(node string) *storagev1.CSINode
}

// usability is on which nodes the volume that a claim has can be used.
type usability struct {
	required *corev1.NodeSelector // of the volume, translated if there is a plugin
	affinity match.Affinity
	// plugin is the in-tree plugin of the volume; "" if it has none, or one that makes no difference. Where it is migrated,
	// translated counts in place of affinity.
	plugin     string
	translated match.Affinity
	nodes      CSINodeView
}

func usabilityOf(volume *corev1.PersistentVolume, view ObjectView) usability {
	u := usability{required: match.RequiredAffinity(volume), affinity: match.AffinityOf(volume)}
	nodes, known := view.(CSINodeView)
	if plugin, zoneKey := zonalPlugin(&volume.Spec.PersistentVolumeSource); known && plugin != "" {
		u.plugin, u.nodes, u.required = plugin, nodes, translate(volume, zoneKey)
		u.translated = match.AffinityTo(u.required)
	}
	return u
}

// on reports whether the volume can be used on the node.
func (u *usability) on(node *corev1.Node) bool {
	if u.plugin != "" && migratedOn(u.nodes.CSINode(node.Name), u.plugin) {
		return u.translated.Accepts(node)
	}
	return u.affinity.Accepts(node)
}

func migratedOn(node *storagev1.CSINode, plugin string) bool {
	return node != nil && slices.Contains(strings.Split(node.Annotations[corev1.MigratedPluginsAnnotationKey], ","), plugin)
}

// zonalPlugin returns the in-tree plugin of a volume, and the label by which its CSI driver says in which zone a node is; ""
// if it is none of those whose driver does so.
func zonalPlugin(source *corev1.PersistentVolumeSource) (plugin, zoneKey string) {
	switch {
	case source.GCEPersistentDisk != nil:
		return "kubernetes.io/gce-pd", "topology.gke.io/zone"
	case source.AWSElasticBlockStore != nil:
		return "kubernetes.io/aws-ebs", "topology.ebs.csi.aws.com/zone"
	case source.Cinder != nil:
		return "kubernetes.io/cinder", "topology.cinder.csi.openstack.org/zone"
	}
	return "", ""
}

// translate returns what the CSI driver requires of a node for an in-tree volume: its node affinity with the driver's key for
// the zone, or with the zones of the volume's label added if it requires none.
func translate(volume *corev1.PersistentVolume, zoneKey string) *corev1.NodeSelector {
	required := match.RequiredAffinity(volume).DeepCopy()
	zone, outdated := zoneLabelOf(volume)
	if !rename(required, zone, zoneKey) {
		required = require(required, zoneKey, zonesIn(volume.Labels[zone]))
	}
	if outdated {
		rename(required, corev1.LabelFailureDomainBetaRegion, corev1.LabelTopologyRegion)
	}
	return required
}

// zoneLabelOf returns the key by which the volume says its zone: in the node affinity before a label, and the one of today
// before the outdated one.
func zoneLabelOf(volume *corev1.PersistentVolume) (key string, outdated bool) {
	const today, former = corev1.LabelTopologyZone, corev1.LabelFailureDomainBetaZone
	required := match.RequiredAffinity(volume)
	_, labelledToday := volume.Labels[today]
	_, labelledFormerly := volume.Labels[former]
	outdated = !requires(required, today) && (requires(required, former) || !labelledToday && labelledFormerly)
	if outdated {
		return former, true
	}
	return today, false
}

// zonesIn returns the zones in a label: a regional volume has several.
func zonesIn(label string) (zones []string) {
	for zone := range strings.SplitSeq(label, "__") {
		if zone = strings.TrimSpace(zone); zone != "" {
			zones = append(zones, zone)
		}
	}
	return zones
}

func requires(required *corev1.NodeSelector, key string) bool {
	found := false
	eachRequirement(required, key, func(*corev1.NodeSelectorRequirement) { found = true })
	return found
}

// rename gives all requirements of a key another key, if one has values, and reports whether it did.
func rename(required *corev1.NodeSelector, from, to string) bool {
	values := 0
	eachRequirement(required, from, func(r *corev1.NodeSelectorRequirement) { values += len(r.Values) })
	if values > 0 {
		eachRequirement(required, from, func(r *corev1.NodeSelectorRequirement) { r.Key = to })
	}
	return values > 0
}

func eachRequirement(required *corev1.NodeSelector, key string, visit func(*corev1.NodeSelectorRequirement)) {
	if required == nil {
		return
	}
	for i := range required.NodeSelectorTerms {
		expressions := required.NodeSelectorTerms[i].MatchExpressions
		for j := range expressions {
			if expressions[j].Key == key {
				visit(&expressions[j])
			}
		}
	}
}

// require has every term require one of the values too.
func require(required *corev1.NodeSelector, key string, values []string) *corev1.NodeSelector {
	if len(values) == 0 {
		return required
	}
	if required == nil {
		required = &corev1.NodeSelector{}
	}
	if len(required.NodeSelectorTerms) == 0 {
		required.NodeSelectorTerms = make([]corev1.NodeSelectorTerm, 1)
	}
	for i := range required.NodeSelectorTerms {
		term := &required.NodeSelectorTerms[i]
		term.MatchExpressions = append(term.MatchExpressions, corev1.NodeSelectorRequirement{Key: key, Operator: corev1.NodeSelectorOpIn, Values: values})
	}
	return required
}
