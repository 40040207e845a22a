// Package bindingtest is an API server in memory.
package bindingtest
