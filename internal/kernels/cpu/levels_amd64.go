package cpu

const (
	AVX2       = Portable + 1 + iota // AVX2, FMA, F16C
	AVXVNNI                          // and AVX-VNNI: VPDPBUSD without AVX-512
	AVX512                           // AVX2 and AVX-512 F, BW, DQ, VL and VNNI
	AVX512BF16                       // and VDPBF16PS
)

var names = [...]string{"portable", "avx2", "avxvnni", "avx512", "avx512bf16"}
