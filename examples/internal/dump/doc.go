// Package dump reads the objects that the example programs work on: what kubectl prints of a cluster, as YAML or JSON,
// and manifests written by hand.
//
//	in, err := dump.Read(files, os.Stdin, nil)
//
// Of what is wrong every file, document, object and field is named, and all of it at once: the error joins a *Problem
// or a *UsageError for each. Kinds and fields that are not known are passed over with a note. A dump of a hundred
// thousand objects is read in seconds: the items of a list are read side by side, and YAML as kubectl writes it by a
// parser that knows no other.
package dump
