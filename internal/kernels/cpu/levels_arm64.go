package cpu

const (
	NEON = Portable + 1 + iota // Advanced SIMD with SDOT
	I8MM                       // and SMMLA
)

var names = [...]string{"portable", "neon", "i8mm"}
