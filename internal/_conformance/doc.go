// Package conformance tests grove serve with published clients and validators. It is a separate
// module, so that grove depends on none of them.
package conformance
