package accessmode

import "slices"

// AllowsNode reports whether a volume with these access modes may be attached to
// the node, given the nodes that it is attached to. ReadOnlyMany and
// ReadWriteMany allow any number of nodes; without either, one. A volume without
// modes says nothing, and its driver decides: it is allowed, as in Kubernetes'
// attach-detach controller.
//
// Several modes in a set are what the volume can do, not how it is used: with
// ReadWriteOnce and ReadOnlyMany, a second node is allowed, though it may turn
// out that the driver refuses it.
func (s Set) AllowsNode(node string, attached ...string) bool {
	many := s == 0 || s&(ReadOnlyMany|ReadWriteMany) != 0
	return many || !slices.ContainsFunc(attached, func(other string) bool { return other != node })
}

// AllowsPod reports whether a claim with these access modes may be used by the
// pod, given the pods of its namespace that use it already; finished ones do not
// count. ReadWriteOncePod allows one pod in the whole cluster, even beside other
// modes, as in Kubernetes' scheduler. Every other set allows any number of pods:
// ReadWriteOnce is about nodes.
func (s Set) AllowsPod(pod string, users ...string) bool {
	return !s.Contains(ReadWriteOncePod) || !slices.ContainsFunc(users, func(other string) bool { return other != pod })
}
