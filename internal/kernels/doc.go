// Package kernels has no code: its subdirectories hold the code closest to the processor.
//
// Input: slices of numbers and packed weights. Output: numbers, with the same bits at every
// instruction level, for any number of workers. Nothing here knows of models or tokens.
//
// Read gemm first, which multiplies weights packed in panels by 1 to 64 rows and more, then simd, the
// operations on vectors. par is the pool of workers, cpu says which level runs, num has number
// formats and operations that must round alike on every processor, and memory says how much memory
// there is. The portable code is the definition; assembly is generated, and equals it to the bit.
package kernels
