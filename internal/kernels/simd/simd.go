// Package simd holds the vector operations of a pass on f32: attention, norms, rotations,
// activations, softmax, and the searches over logits.
//
// # Same bits
//
// Every operation is defined by the portable code here, down to the order of its roundings,
// and every level (internal/kernels/cpu) computes exactly that:
//
//   - A multiply-add is always fused (num.FMA, VFMADD, FMLA).
//   - An output of Scores or Mix is one chain of fused multiply-adds, in the order of d or j.
//   - A sum over a vector runs in 16 lanes, element i in lane i%16, each lane in order of i;
//     then lanes 8 apart are added, then 4, 2 and 1.
//   - exp is our own polynomial (exp.go); division and square root are the correctly
//     rounded ones of every processor.
//
// Only the payload of a NaN may differ.
//
// # Layout
//
// Wrappers that check lengths, and the portable code, are in files by subject; dispatch_amd64.go,
// dispatch_arm64.go and dispatch_noasm.go choose the level. These are generated (see _dispatch), as
// is the assembly: see _asm, and _neon next to this package.
//
// A destination may be the same slice as an operand, but must not overlap it otherwise.
package simd

//go:generate go run ./_dispatch
//go:generate go run -C _asm .
//go:generate go run -C ../_neon ./simd

// lanes is the number of partial sums of a reduction.
const lanes = 16

// fold adds lanes 8 apart, then 4, 2 and 1.
func fold(l *[lanes]float32) float32 {
	for d := lanes / 2; d > 0; d /= 2 {
		for i := range d {
			l[i] += l[i+d]
		}
	}
	return l[0]
}
