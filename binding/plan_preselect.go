package binding

// preselect puts the volumes that the claims' selectors match on shelves of their own. That pays where many nodes are to
// come: the selector is asked about each volume once, and not for each node anew.
func (p *planner) preselect() {
	for _, open := range p.open {
		if open.selector != nil && open.stocks != nil {
			open.stocks, open.preselected = open.selectedFrom(open.stocks), true
		}
	}
}

// selectedFrom is a shelf of those volumes that are large enough, have the modes, and are matched by the selector. They
// cannot be found by their labels there.
func (o *openClaim) selectedFrom(f *shelf) *shelf {
	selected := &shelf{}
	s := survey{c: &o.criteria, ask: askOf(&o.criteria), serving: serving(o.modes)}
	s.selectable(f, func(k *rack[stock]) {
		s.each(k, func(v candidate) {
			if !failsSelector(o.criteria, v) {
				selected.place(fileOf(v.PersistentVolume))
			}
		})
	})
	return selected
}
