package cpu

const (
	AVX2       = Portable + 1 + iota // AVX2, FMA, F16C
	AVX512                           // AVX-512 F, BW, DQ, VL and VNNI
	AVX512BF16                       // and VDPBF16PS
)

var names = [...]string{"portable", "avx2", "avx512", "avx512bf16"}
