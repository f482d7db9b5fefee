// Package kernels has no code: it is the room of what runs on the processor.
//
// In come slices of numbers and packed weights, out come numbers: the same bits at every level of
// instructions, for any number of workers. Nothing here knows of models or tokens.
//
// Read gemm first, products of weights that are packed in panels by 1 to 64 rows and more, then simd,
// the operations on vectors. par is the pool of workers, cpu says which level runs, num has number
// formats and what must round alike on every processor, memory says how much there is.
// The portable code is the definition; assembly is generated, and equals it to the bit.
package kernels
