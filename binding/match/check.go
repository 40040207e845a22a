package match

import corev1 "k8s.io/api/core/v1"

// Check compares a volume with a claim (M1 to M12) and returns every reason why it does not fit, in
// the order of the rules; none: it fits.
//
// An error is an *obj.InvalidError: the claim has a malformed selector, an unknown access mode or a
// negative request, or its class has no valid volumeBindingMode. A malformed volume is not an error
// but a Mismatch, for it must not keep a claim from the other volumes (X7).
func Check(claim *corev1.PersistentVolumeClaim, volume *corev1.PersistentVolume, terms Terms) (Mismatches, error) {
	c, err := NewCriteria(claim, terms)
	if err != nil {
		return nil, err
	}
	return c.Mismatches(volume), nil
}

// CheckNamed compares a volume with a claim that names it in spec.volumeName (C7): by M1 and M3 to M7
// only, for who names a volume has chosen it, whatever the selector says. Errors are those of Check.
func CheckNamed(claim *corev1.PersistentVolumeClaim, volume *corev1.PersistentVolume) (Mismatches, error) {
	c, err := NewCriteria(claim, Terms{})
	if err != nil {
		return nil, err
	}
	c.byName = true
	return c.Mismatches(volume), nil
}

// Fits reports whether no rule fails. It does not allocate, unless it has to parse a node affinity.
func (c *Criteria) Fits(volume *corev1.PersistentVolume) bool {
	return c.failing(c.candidate(volume), 0) == len(fitRules)
}

// Mismatches collects every rule that fails.
func (c *Criteria) Mismatches(volume *corev1.PersistentVolume) Mismatches {
	var found Mismatches
	v := c.candidate(volume)
	for i := c.failing(v, 0); i < len(fitRules); i = c.failing(v, i+1) {
		asks, has := fitRules[i].values(*c, v)
		found = append(found, Mismatch{Reason: fitRules[i].reason, Asks: asks, Has: has})
	}
	return found
}

// Selects reports whether the claim's selector matches the volume (M8).
func (c *Criteria) Selects(volume *corev1.PersistentVolume) bool {
	return !failsSelector(*c, candidate{PersistentVolume: volume})
}

// Usable reports whether the volume is usable on the node, if one is given (M10).
func (c *Criteria) Usable(volume *corev1.PersistentVolume) bool {
	return !failsNodeAffinity(*c, candidate{PersistentVolume: volume})
}

// Unavailable returns why no claim at all can choose the volume, whosever it is: Deleting, Malformed or NotAvailable,
// the first of them; "" if one can.
func Unavailable(volume *corev1.PersistentVolume) Reason {
	v := candidate{PersistentVolume: volume}
	switch {
	case failsDeleting(Criteria{}, v):
		return Deleting
	case failsMalformed(Criteria{}, v):
		return Malformed
	case failsNotAvailable(Criteria{}, v):
		return NotAvailable
	}
	return ""
}

// failing is the position of the first rule that fails, of those from position from on; len(fitRules)
// if there is none.
func (c *Criteria) failing(v candidate, from int) int {
	situation := c.situation(v.link)
	for i := from; i < len(fitRules); i++ {
		if fitRules[i].counts&situation != 0 && fitRules[i].fails(*c, v) {
			return i
		}
	}
	return len(fitRules)
}
