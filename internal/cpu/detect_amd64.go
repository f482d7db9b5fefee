//go:build amd64 && !purego

package cpu

import "golang.org/x/sys/cpu"

func detect() Level {
	x := &cpu.X86
	switch {
	case !(x.HasAVX2 && x.HasFMA && x.HasF16C):
		return Portable
	case !(x.HasAVX512F && x.HasAVX512BW && x.HasAVX512DQ && x.HasAVX512VL && x.HasAVX512VNNI):
		return AVX2
	case !x.HasAVX512BF16:
		return AVX512
	}
	return AVX512BF16
}
