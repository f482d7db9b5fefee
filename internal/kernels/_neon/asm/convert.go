package asm

// one writes an instruction on one register, its operands named by their arrangements.
func (f *File) one(op uint32, name, to, from string, d, n int) {
	f.word(op|uint32(n)<<5|uint32(d), "%s v%d.%s, v%d.%s", name, d, to, n, from)
}

// Fcvtl widens the four f16 in the lower half of n to f32, Fcvtl2 those in the upper half.
func (f *File) Fcvtl(d, n int)  { f.one(0x0e217800, "fcvtl", "4s", "4h", d, n) }
func (f *File) Fcvtl2(d, n int) { f.one(0x4e217800, "fcvtl2", "4s", "8h", d, n) }

// IntToFloat and UintToFloat make f32 of integers, IntFromFloat integers of f32, ties to even.
func (f *File) IntToFloat(d, n int)   { f.one(0x4e21d800, "scvtf", "4s", "4s", d, n) }
func (f *File) UintToFloat(d, n int)  { f.one(0x6e21d800, "ucvtf", "4s", "4s", d, n) }
func (f *File) IntFromFloat(d, n int) { f.one(0x4e21a800, "fcvtns", "4s", "4s", d, n) }

// IntToFloat32nd makes f32 of integers divided by 32.
func (f *File) IntToFloat32nd(d, n int) {
	f.word(0x4f3be400|uint32(n)<<5|uint32(d), "scvtf v%d.4s, v%d.4s, #5", d, n)
}

// Sxtl widens integers with their sign: those in the lower half of n, Sxtl2 those in the upper
// half. B are bytes, H halfwords.
func (f *File) SxtlB(d, n int)  { f.one(0x0f08a400, "sxtl", "8h", "8b", d, n) }
func (f *File) SxtlH(d, n int)  { f.one(0x0f10a400, "sxtl", "4s", "4h", d, n) }
func (f *File) Sxtl2H(d, n int) { f.one(0x4f10a400, "sxtl2", "4s", "8h", d, n) }

// Addv leaves the sum of n's elements in d's first.
func (f *File) Addv(d, n int) { f.across(0x4eb1b800, "addv", d, n) }

// Cmhi has ones where an element of n is above that of m, without sign; Cmeq0 where it is zero.
func (f *File) Cmhi(d, n, m int) {
	f.word(0x6ea03400|uint32(m)<<16|uint32(n)<<5|uint32(d), "cmhi v%d.4s, v%d.4s, v%d.4s", d, n, m)
}
func (f *File) Cmeq0(d, n int) {
	f.word(0x4ea09800|uint32(n)<<5|uint32(d), "cmeq v%d.4s, v%d.4s, #0", d, n)
}

// Zero clears d.
func (f *File) Zero(d int) { f.word(0x6f00e400|uint32(d), "movi v%d.2d, #0", d) }
