//go:build unix && !linux

package gemm

func hugePages([]byte) {}
