// Package dump reads the objects that the example programs work on: what kubectl prints of a cluster, as JSON or YAML,
// and manifests written by hand.
//
//	in, err := dump.Read(files, os.Stdin, nil)
//	view := dump.NewView(in.Objects())
//
// An [Input] has the objects, each an [Entry] with its place in the files. The error joins a [*Problem] or a
// [*UsageError] for each thing that is wrong, and names its file, document, object and field. Kinds and fields that are
// not known are passed over with a note. A [View] answers what a decision asks about the objects.
//
// A large dump is read fastest as JSON: the items of its List are decoded in parallel, a hundred thousand of them in
// seconds. YAML is decoded as a whole.
//
// The way of a file is: stream.go cuts it into documents, decode.go reads each, list.go opens lists, object.go makes
// typed objects of what is in them, and read.go gathers these. program.go is what the programs share beside their
// input.
package dump
