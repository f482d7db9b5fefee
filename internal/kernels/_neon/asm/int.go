package asm

// Masks and whole numbers in vectors, as far as Go's assembler lacks them.

// Bic computes d = n &^ m.
func (f *File) Bic(d, n, m int) {
	f.word(0x4e601c00|uint32(m)<<16|uint32(n)<<5|uint32(d), "bic v%d.16b, v%d.16b, v%d.16b", d, n, m)
}

// Cmlt0 has ones where an element of n is negative.
func (f *File) Cmlt0(d, n int) {
	f.word(0x4ea0a800|uint32(n)<<5|uint32(d), "cmlt v%d.4s, v%d.4s, #0", d, n)
}

// Umaxv leaves the largest element of n in d's first.
func (f *File) Umaxv(d, n int) { f.across(0x6eb0a800, "umaxv", d, n) }

// Nibbles leaves bits 4 to 7 of each 16-bit element of n in a byte of d: of a mask of 16 bytes, four bits of each.
func (f *File) Nibbles(d, n int) {
	f.word(0x0f0c8400|uint32(n)<<5|uint32(d), "shrn v%d.8b, v%d.8h, #4", d, n)
}
