// Package judge says what a controller's decision or write breaks. The random histories, the scenarios and the model checker
// all ask it, so that a rule is written down once.
//
// WrongOfVolume and WrongOfClaim look at a write from what is stored; WronglyTaken and WrongOfUnneeded at a decision from what
// its controller knows; ProofFor says what must have been read live before it. Each returns what is broken as a text that
// begins with the rule, "" if nothing is.
package judge
