// Package obj names the objects that decisions are about, and decides which of two versions is the later.
//
// A [Key] names one claim or volume, or a list that is read as one: the pods of a namespace, all attachments. A
// controller's queue holds keys. [Object] is any API object. An [InvalidError] is what every package returns for an
// object that no decision can be made on.
//
// # Files
//
//   - key.go has the keys, and how to get them from objects,
//   - object.go has the versions of an object, its absence, whether a reply is the object, and InvalidError.
package obj
