package binding

import "github.com/pvbind/pvbind/binding/obj"

// Known are the objects that the controller has stored: the very ones that it was handed.
func (c *Controller) Known() []obj.Object {
	defer c.lock().Unlock()
	var known []obj.Object
	for _, volume := range c.state.volumes {
		known = append(known, volume)
	}
	for _, claim := range c.state.claims {
		known = append(known, claim)
	}
	for _, class := range c.state.classes {
		known = append(known, class)
	}
	for _, pod := range c.state.pods {
		known = append(known, pod)
	}
	for _, attachment := range c.state.attachments {
		known = append(known, attachment)
	}
	return known
}
