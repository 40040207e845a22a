// Package hookrun calls hooks: each for a limited time, with copies of its arguments, and never two at once for the same
// storage. Runner.Run turns an action that runs a hook into the engine's Reply. A hook that panics, ends its goroutine or
// does not return in time is an error of that one call (Rh).
package hookrun
