package gemm

// The generators of the assembly for all architectures, and of its callers.

//go:generate go -C _asm run . -out ../kernels_amd64.s -pkg gemm
//go:generate go -C ../_neon run ./gemm
//go:generate go run ./_dispatch
