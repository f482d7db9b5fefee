package gemm

// The generators of the assembly for all architectures.

//go:generate go -C _asm run . -out ../kernels_amd64.s -pkg gemm
//go:generate go -C ../_neon run ./gemm
