package gemm

// Panel is the number of outputs packed together. 32 is two AVX-512 registers: with 12 rows that is
// 24 accumulator chains, three times as many as the multiply unit's latency requires, fed by 14
// loads per 24 multiplies; and a panel of a common model (K = 1024, bf16) is 64 KiB, so a task of a
// few panels is neither too long to share out nor too short to be worth a call.
const Panel = 32

// A packed panel, for K inputs (all little endian):
//
//	F32   [K][Panel]f32
//	F16   [K][Panel]f16
//	BF16  [K/2][Panel][2]bf16      the even k in the low half; an odd K is padded with zero
//	Q8_0, Q4_0, Q4_1, Q5_0, Q5_1, IQ4_NL, MXFP4  [K/32]: blocks.go
//	Q2_K to Q6_K  [K/256]: kquants.go
//	IQ1_S and what follows it  [K/256]: coded.go
//
// Every step of k is a whole number of cache lines, so a panel is one aligned stream.
const (
	block = 32 // elements that share a scale

	// xBlock is the bytes of a quantised block of activations, the start of its sum, its scale and its sum.
	xBlock = block + 12
	xScale = block + 4
	xSum   = block + 8

	// Group is the number of activations that share an int8 scale in a product of a K type. For other
	// types it is a block. Each scale costs multiplications per output and row in addition to the 8 + 1
	// of a block of 32: of the unit's peak, groups of 32, 64, 128 and 256 leave 80, 84, 86 and 88 % to
	// a product of Q8_0. But the wider the group, the coarser the steps near an outlier. Relative error
	// of a dot product of 3072 (with activations rounded and weights exact):
	//
	//	activations                      32      64     128     256    whole row
	//	Gaussian                      0.55 %  0.59 %  0.64 %  0.69 %   0.8 %
	//	silu(g)·u (into a down proj.)  0.9 %   1.1 %   1.3 %   1.5 %   2.3 %
	//	1 % of channels 20 times       1.2 %   1.6 %   2.1 %   2.8 %   4.8 %
	//	0.2 % of channels 100 times    1.3 %   1.8 %   2.5 %   3.6 %   8.8 %
	//
	// llama.cpp has 32 for Q8_0 and 256 for the K types: docs/accuracy.md compares.
	Group       = 128
	groupBlocks = Group / block
)

// panelBytes returns the packed size of one panel.
func panelBytes(t Type, in int) int { return steps(t, in) * stepBytes[t] }

// steps returns the number of iterations of a kernel's loop: elements, pairs, blocks of 32 or of 256.
func steps(t Type, in int) int { return (in + stepK[t] - 1) / stepK[t] }

var (
	stepK = [NumTypes]int{F32: 1, F16: 1, BF16: 2,
		Q8_0: block, Q4_0: block, Q4_1: block, Q5_0: block, Q5_1: block, IQ4_NL: block, MXFP4: block,
		Q4_K: super, Q5_K: super, Q6_K: super, Q2_K: super, Q3_K: super}
	stepBytes = [NumTypes]int{F32: Panel * 4, F16: Panel * 2, BF16: Panel * 4,
		Q8_0: blockTypes[Q8_0].packed, Q4_0: blockTypes[Q4_0].packed, Q4_1: blockTypes[Q4_1].packed,
		Q5_0: blockTypes[Q5_0].packed, Q5_1: blockTypes[Q5_1].packed,
		IQ4_NL: blockTypes[IQ4_NL].packed, MXFP4: blockTypes[MXFP4].packed,
		Q4_K: kTypes[Q4_K].packed, Q5_K: kTypes[Q5_K].packed, Q6_K: kTypes[Q6_K].packed,
		Q2_K: kTypes[Q2_K].packed, Q3_K: kTypes[Q3_K].packed}
)

func init() {
	for t := IQ1_S; t < NumTypes; t++ {
		stepK[t], stepBytes[t] = super, Panel*t.code().Bytes()
	}
}

// xOffset returns where step s begins in a row of activations.
func xOffset(t Type, s int, pairs bool) int {
	switch {
	case t >= Q4_K:
		return s * (super / Group) * kGroup
	case t >= Q8_0:
		return s * xBlock
	case t == BF16 && !pairs:
		return s * 8
	}
	return s * 4
}

// quantizedBytes returns the size of a row of n activations for integer products with weights of type t.
func quantizedBytes(t Type, n int) int {
	if t < Q4_K {
		return n / block * xBlock
	}
	return n / Group * kGroup
}
