package asm

// Sdot adds to each i32 of d the sum of four products of i8.
func (f *File) Sdot(d, n, m int) {
	f.word(0x4e809400|uint32(m)<<16|uint32(n)<<5|uint32(d), "sdot v%d.4s, v%d.16b, v%d.16b", d, n, m)
}

// Smmla adds to the 2×2 i32 of d the products of two rows of eight i8, the halves of n, and two of
// m; Usmmla takes those of n without sign.
func (f *File) Smmla(d, n, m int) {
	f.word(0x4e80a400|uint32(m)<<16|uint32(n)<<5|uint32(d), "smmla v%d.4s, v%d.16b, v%d.16b", d, n, m)
}
func (f *File) Usmmla(d, n, m int) {
	f.word(0x4e80ac00|uint32(m)<<16|uint32(n)<<5|uint32(d), "usmmla v%d.4s, v%d.16b, v%d.16b", d, n, m)
}

// SdotElem is Sdot of all fours of n and one of m.
func (f *File) SdotElem(d, n, m, index int) {
	low, high := uint32(index)&1, uint32(index)>>1
	f.word(0x4f80e000|low<<21|uint32(m)<<16|high<<11|uint32(n)<<5|uint32(d), "sdot v%d.4s, v%d.16b, v%d.4b[%d]", d, n, m,
		index)
}
