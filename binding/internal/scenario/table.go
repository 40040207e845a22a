package scenario

import (
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"

	"github.com/pvbind/pvbind/binding/bindingtest"
	"github.com/pvbind/pvbind/binding/obj"
)

// column is one thing that a table says of an object. "-" means that it is not set.
type column struct {
	name   string
	status bool // it is part of the status
	get    func(obj.Object) string
	Set    func(obj.Object, string) error
}

// KindTable is how objects of a kind are written down. The first column names the kind and the object.
type KindTable struct {
	Short   string
	Kind    obj.Kind
	blank   func(name string) obj.Object
	columns []column
	shown   []string // by show
}

// KindTables returns the tables that there are, one a kind.
func KindTables() []KindTable {
	return []KindTable{
		{"pv", obj.KindVolume, blankVolume, volumeColumns(),
			[]string{"CAPACITY", "MODES", "POLICY", "STATUS", "CLAIM", "CLASS"}},
		{"pvc", obj.KindClaim, blankClaim, claimColumns(), []string{"STATUS", "VOLUME", "CAPACITY", "CLASS"}},
		{"sc", obj.KindClass, func(name string) obj.Object { return bindingtest.Class(name) }, classColumns(), nil},
		{"pod", obj.KindPod, blankPod, podColumns(), nil},
		{"va", obj.KindAttachment, blankAttachment, attachmentColumns(), nil},
	}
}

func blankVolume(name string) obj.Object {
	return bindingtest.Volume(name, "1Gi", func(volume *corev1.PersistentVolume) {
		mode := corev1.PersistentVolumeFilesystem
		volume.Spec.VolumeMode = &mode
		volume.Spec.PersistentVolumeReclaimPolicy = corev1.PersistentVolumeReclaimRetain
	})
}

func blankClaim(name string) obj.Object {
	namespace, name, _ := strings.Cut(name, "/")
	return bindingtest.Claim(namespace, name, "1Gi", func(claim *corev1.PersistentVolumeClaim) {
		mode := corev1.PersistentVolumeFilesystem
		claim.Spec.VolumeMode = &mode
	})
}

func blankPod(name string) obj.Object {
	namespace, name, _ := strings.Cut(name, "/")
	return bindingtest.Pod(namespace, name, "")
}

func blankAttachment(name string) obj.Object {
	attachment := bindingtest.Attachment("", "")
	attachment.Name = name
	return attachment
}

func kindNamed(short string) (KindTable, bool) {
	tables := KindTables()
	i := slices.IndexFunc(tables, func(t KindTable) bool { return t.Short == short })
	if i < 0 {
		return KindTable{}, false
	}
	return tables[i], true
}

// KeyNamed reads "pv/a" and "pvc/default/a".
func KeyNamed(text string) (KindTable, obj.Key, error) {
	short, name, _ := strings.Cut(text, "/")
	kind, ok := kindNamed(short)
	if !ok || name == "" {
		return kind, obj.Key{}, fmt.Errorf("%q is not an object like pv/a or pvc/default/a", text)
	}
	key, err := bindingtest.KeyOf(kind.blank(name))
	if err == nil && key.Name == "" {
		err = fmt.Errorf("%q has no namespace", text)
	}
	return kind, key, err
}

// HeaderOf reads the first line of a table.
func HeaderOf(line string) (KindTable, []string, error) {
	names := strings.Fields(line)
	kind, ok := kindNamed(strings.ToLower(names[0]))
	if !ok || names[0] != strings.ToUpper(names[0]) {
		return kind, nil, fmt.Errorf("%q begins neither a table nor a command", line)
	}
	for _, name := range names[1:] {
		if _, ok := kind.Column(name); !ok {
			return kind, nil, fmt.Errorf("a %s has no column %q; it has %s", names[0], name, kind.names())
		}
	}
	return kind, names[1:], nil
}

// Column returns the column of that name.
func (k KindTable) Column(name string) (column, bool) {
	i := slices.IndexFunc(k.columns, func(c column) bool { return c.name == name })
	if i < 0 {
		return column{}, false
	}
	return k.columns[i], true
}

func (k KindTable) names() string {
	var names []string
	for _, column := range k.columns {
		names = append(names, column.name)
	}
	return strings.Join(names, ", ")
}

// verbatim reports whether a table with these columns has objects as they stand in a running cluster.
func (k KindTable) verbatim(columns []string) bool {
	return slices.Contains(columns, "UID") || slices.Contains(columns, "STATUS")
}

// Object returns what a row describes.
func (k KindTable) Object(columns, cells []string) (obj.Object, error) {
	if len(cells) != len(columns)+1 {
		return nil, fmt.Errorf("the row has %d cells, the table %d columns", len(cells), len(columns)+1)
	}
	_, key, err := KeyNamed(k.Short + "/" + cells[0])
	if err != nil {
		return nil, err
	}
	object := k.blank(strings.TrimPrefix(key.Namespace+"/"+key.Name, "/"))
	for i, name := range columns {
		column, _ := k.Column(name)
		if err := column.Set(object, cells[i+1]); err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
	}
	if claim, ok := object.(*corev1.PersistentVolumeClaim); ok && claim.Status.Phase == corev1.ClaimBound {
		claim.Status.AccessModes = claim.Spec.AccessModes
	}
	return object, nil
}

// tableOf prints objects.
func tableOf(of obj.Kind, objects []obj.Object) []string {
	if len(objects) == 0 {
		return nil
	}
	tables := KindTables()
	kind := tables[slices.IndexFunc(tables, func(t KindTable) bool { return t.Kind == of })]
	rows := [][]string{append([]string{strings.ToUpper(kind.Short)}, kind.shown...)}
	for _, object := range objects {
		row := []string{strings.TrimPrefix(object.GetNamespace()+"/"+object.GetName(), "/")}
		for _, name := range kind.shown {
			column, _ := kind.Column(name)
			row = append(row, column.get(object))
		}
		rows = append(rows, row)
	}
	return aligned(rows)
}

// aligned puts the cells of a column below each other.
func aligned(rows [][]string) []string {
	widths := make([]int, len(rows[0]))
	for _, row := range rows {
		for i, cell := range row {
			widths[i] = max(widths[i], len(cell))
		}
	}
	lines := make([]string, len(rows))
	for i, row := range rows {
		for j, cell := range row {
			lines[i] += cell + strings.Repeat(" ", widths[j]-len(cell)+3)
		}
		lines[i] = strings.TrimRight(lines[i], " ")
	}
	return lines
}

func volumeColumns() []column {
	type pv = *corev1.PersistentVolume
	return append(metadataColumns(),
		of("CAPACITY", func(v pv) string { return storageIn(v.Spec.Capacity) }, func(v pv, cell string) error { return setStorage(&v.Spec.Capacity, cell) }),
		of("MODES", func(v pv) string { return modesIn(v.Spec.AccessModes) }, func(v pv, cell string) error { return setModes(&v.Spec.AccessModes, cell) }),
		text("POLICY", func(v pv) *corev1.PersistentVolumeReclaimPolicy { return &v.Spec.PersistentVolumeReclaimPolicy }),
		inStatus(of("STATUS", func(v pv) string { return statusOf(v, string(v.Status.Phase)) }, func(v pv, cell string) error {
			v.Status.Phase = corev1.PersistentVolumePhase(orEmpty(cell))
			return nil
		})),
		inStatus(text("REASON", func(v pv) *string { return &v.Status.Reason })),
		of("CLAIM", claimRefIn, SetClaimRef),
		text("CLASS", func(v pv) *string { return &v.Spec.StorageClassName }),
		pointer("MODE", func(v pv) **corev1.PersistentVolumeMode { return &v.Spec.VolumeMode }),
		pointer("ATTRIBUTES", func(v pv) **string { return &v.Spec.VolumeAttributesClassName }),
		of("SOURCE", sourceIn, setSource),
	)
}

func claimColumns() []column {
	type pvc = *corev1.PersistentVolumeClaim
	return append(metadataColumns(),
		inStatus(of("STATUS", func(c pvc) string { return statusOf(c, string(c.Status.Phase)) }, func(c pvc, cell string) error {
			c.Status.Phase = corev1.PersistentVolumeClaimPhase(orEmpty(cell))
			return nil
		})),
		text("VOLUME", func(c pvc) *string { return &c.Spec.VolumeName }),
		inStatus(of("CAPACITY", func(c pvc) string { return storageIn(c.Status.Capacity) }, func(c pvc, cell string) error { return setStorage(&c.Status.Capacity, cell) })),
		of("REQUEST", func(c pvc) string { return storageIn(c.Spec.Resources.Requests) }, func(c pvc, cell string) error { return setStorage(&c.Spec.Resources.Requests, cell) }),
		of("MODES", func(c pvc) string { return modesIn(c.Spec.AccessModes) }, func(c pvc, cell string) error { return setModes(&c.Spec.AccessModes, cell) }),
		pointer("CLASS", func(c pvc) **string { return &c.Spec.StorageClassName }),
		pointer("MODE", func(c pvc) **corev1.PersistentVolumeMode { return &c.Spec.VolumeMode }),
		pointer("ATTRIBUTES", func(c pvc) **string { return &c.Spec.VolumeAttributesClassName }),
		of("SELECTOR", func(c pvc) string { return "" }, setSelector),
	)
}

func classColumns() []column {
	type sc = *storagev1.StorageClass
	return append(metadataColumns(),
		text("PROVISIONER", func(c sc) *string { return &c.Provisioner }),
		pointer("POLICY", func(c sc) **corev1.PersistentVolumeReclaimPolicy { return &c.ReclaimPolicy }),
		pointer("BINDING", func(c sc) **storagev1.VolumeBindingMode { return &c.VolumeBindingMode }),
		of("DEFAULT", func(c sc) string { return "" }, setDefaultClass),
	)
}

func podColumns() []column {
	type pod = *corev1.Pod
	return append(metadataColumns(),
		text("NODE", func(p pod) *string { return &p.Spec.NodeName }),
		inStatus(text("STATUS", func(p pod) *corev1.PodPhase { return &p.Status.Phase })),
		inStatus(of("STARTED", startedIn, setStarted)),
		of("CLAIMS", func(p pod) string { return "" }, setPodClaims),
	)
}

func attachmentColumns() []column {
	type va = *storagev1.VolumeAttachment
	return append(metadataColumns(),
		pointer("VOLUME", func(a va) **string { return &a.Spec.Source.PersistentVolumeName }),
		text("NODE", func(a va) *string { return &a.Spec.NodeName }),
	)
}
