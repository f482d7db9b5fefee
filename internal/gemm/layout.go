package gemm

// Panel is the number of outputs packed together. 32 is two AVX-512 registers: with 8 rows
// that is 16 accumulator chains, twice what the multiply unit's latency asks for, fed by 10
// loads per 16 multiplies; and a panel of a common model (K = 1024, bf16) is 64 KiB, so that
// a task of a few panels is neither too long to share out nor too short to be worth a call.
const Panel = 32

// A packed panel, for K inputs (all little endian):
//
//	F32   [K][Panel]f32
//	F16   [K][Panel]f16
//	BF16  [K/2][Panel][2]bf16      the even k in the low half; an odd K is padded with zero
//	Q8_0  [K/32]{ [Panel]f16 scale; [8][Panel][4]u8 }   bytes are weight+128: VPDPBUSD
//	      wants one operand unsigned, and takes −128·Σx as the accumulator's start
//
// Every step of k is a whole number of cache lines, so a panel is one aligned stream.
const (
	block       = 32                    // elements of Q8_0 under one scale
	fileBlock   = 2 + block             // bytes of such a block in a file
	packedBlock = Panel*2 + Panel*block // and of Panel of them packed

	// Group is the number of activations under one int8 scale in a Q8_0 product.
	Group       = 128
	groupBlocks = Group / block
)

// panelBytes is the packed size of one panel.
func panelBytes(t Type, in int) int { return steps(t, in) * stepBytes[t] }

// steps is the number of times a kernel's loop goes round: elements, pairs or blocks.
func steps(t Type, in int) int { return (in + stepK[t] - 1) / stepK[t] }

var (
	stepK     = [numTypes]int{F32: 1, F16: 1, BF16: 2, Q8_0: block}
	stepBytes = [numTypes]int{F32: Panel * 4, F16: Panel * 2, BF16: Panel * 4, Q8_0: packedBlock}
)
