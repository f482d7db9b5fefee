//go:build !amd64 && !arm64

package cpu

var names = [...]string{"portable"}
