//go:build (!amd64 && !arm64) || purego

package cpu

func has(l Level) bool { return l == Portable }
