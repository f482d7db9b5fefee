package gemm

// The assembly of all architectures, wherever it is generated.

//go:generate go -C _asm run . -out ../kernels_amd64.s -pkg gemm
//go:generate go -C ../_neon run ./gemm
