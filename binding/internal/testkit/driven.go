package testkit

import (
	"github.com/pvbind/pvbind/binding/bindingtest"
	"github.com/pvbind/pvbind/binding/obj"
)

// Driven is a server and a controller on it that is driven step by step.
type Driven struct {
	*bindingtest.Server
	*bindingtest.Driver
}

// NewDriven starts a server with these objects in it and a controller on it. Nothing is synced before Settle.
func NewDriven(objects ...obj.Object) *Driven {
	return NewDrivenWith(bindingtest.DriverOptions{}, objects...)
}

// NewDrivenWith starts a server with these objects in it, and a controller with these options.
func NewDrivenWith(options bindingtest.DriverOptions, objects ...obj.Object) *Driven {
	server := bindingtest.NewServer(objects...)
	return &Driven{Server: server, Driver: bindingtest.NewDriver(server, options)}
}
