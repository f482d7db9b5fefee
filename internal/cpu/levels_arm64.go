package cpu

const NEON = Portable + 1 // Advanced SIMD with SDOT

var names = [...]string{"portable", "neon"}
