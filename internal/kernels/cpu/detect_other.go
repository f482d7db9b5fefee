//go:build (!amd64 && !arm64) || purego

package cpu

// Has says whether this processor has a level.
func Has(l Level) bool { return l == Portable }
