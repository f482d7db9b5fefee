package num

import "math"

// The integers that the four bits of an element stand for: of IQ4_NL and IQ4_XS, and of MXFP4, where they
// are twice the numbers of OCP's E2M1.
var (
	IQ4   = [16]int8{-127, -104, -83, -65, -49, -35, -22, -10, 1, 13, 25, 38, 53, 69, 89, 113}
	MXFP4 = [16]int8{0, 1, 2, 3, 4, 6, 8, 12, 0, -1, -2, -3, -4, -6, -8, -12}
)

// ScaleMXFP4 is 2^(e−128), half of what OCP's E8M0 says, since MXFP4's integers are doubled. bf16 has
// all of these numbers.
func ScaleMXFP4(e byte) float32 { return float32(math.Ldexp(1, int(e)-128)) }

// ExponentMXFP4 is the inverse of ScaleMXFP4.
func ExponentMXFP4(scale float32) byte { return byte(math.Ilogb(float64(scale)) + 128) }
