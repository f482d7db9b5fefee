// Package conformance tests grove serve with the clients and validators that others publish. It is
// a module of its own, so that grove depends on none of them.
package conformance
