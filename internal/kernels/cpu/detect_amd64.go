//go:build amd64 && !purego

package cpu

import "golang.org/x/sys/cpu"

// Has says whether this processor has a level.
func Has(l Level) bool {
	x := &cpu.X86
	switch l {
	case AVX2:
		return x.HasAVX2 && x.HasFMA && x.HasF16C
	case AVXVNNI:
		return Has(AVX2) && x.HasAVXVNNI
	case AVX512:
		return Has(AVX2) && x.HasAVX512F && x.HasAVX512BW && x.HasAVX512DQ && x.HasAVX512VL && x.HasAVX512VNNI
	case AVX512BF16:
		return Has(AVX512) && x.HasAVX512BF16
	}
	return l == Portable
}
