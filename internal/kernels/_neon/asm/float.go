package asm

// Vectors of four f32, and the masks that comparisons of them leave. Registers go by number, in ARM's order:
// the destination first.

// floats writes an instruction on whole vectors of f32.
func (f *File) floats(op uint32, name string, d, n, m int) {
	f.word(op|uint32(m)<<16|uint32(n)<<5|uint32(d), "%s v%d.4s, v%d.4s, v%d.4s", name, d, n, m)
}

func (f *File) Fadd(d, n, m int) { f.floats(0x4e20d400, "fadd", d, n, m) }
func (f *File) Fsub(d, n, m int) { f.floats(0x4ea0d400, "fsub", d, n, m) }
func (f *File) Fmul(d, n, m int) { f.floats(0x6e20dc00, "fmul", d, n, m) }
func (f *File) Fdiv(d, n, m int) { f.floats(0x6e20fc00, "fdiv", d, n, m) }

// Faddp adds neighbours: of n, then of m.
func (f *File) Faddp(d, n, m int) { f.floats(0x6e20d400, "faddp", d, n, m) }

// Frintn rounds to whole numbers, ties to even.
func (f *File) Frintn(d, n int) { f.float1(0x4e218800, "frintn", d, n) }

// Fmin has a NaN where either is one; Fmaxnm the number, of a number and a quiet NaN.
func (f *File) Fmin(d, n, m int)   { f.floats(0x4ea0f400, "fmin", d, n, m) }
func (f *File) Fmaxnm(d, n, m int) { f.floats(0x4e20c400, "fmaxnm", d, n, m) }

// Comparisons are false where either is a NaN.
func (f *File) Fcmeq(d, n, m int) { f.floats(0x4e20e400, "fcmeq", d, n, m) }
func (f *File) Fcmge(d, n, m int) { f.floats(0x6e20e400, "fcmge", d, n, m) }
func (f *File) Fcmgt(d, n, m int) { f.floats(0x6ea0e400, "fcmgt", d, n, m) }

// FmulElem computes d = n · m[index].
func (f *File) FmulElem(d, n, m, index int) {
	f.byElem(0x4f809000, "fmul", d, n, m, index)
}

// FmlsElem computes d = d - n · m[index], rounded once.
func (f *File) FmlsElem(d, n, m, index int) {
	f.byElem(0x4f805000, "fmls", d, n, m, index)
}

func (f *File) byElem(op uint32, name string, d, n, m, index int) {
	low, high := uint32(index)&1, uint32(index)>>1
	f.word(op|low<<21|uint32(m)<<16|high<<11|uint32(n)<<5|uint32(d), "%s v%d.4s, v%d.4s, v%d.s[%d]", name, d, n, m, index)
}

func (f *File) Fabs(d, n int) { f.float1(0x4ea0f800, "fabs", d, n) }
func (f *File) Fneg(d, n int) { f.float1(0x6ea0f800, "fneg", d, n) }

func (f *File) float1(op uint32, name string, d, n int) {
	f.word(op|uint32(n)<<5|uint32(d), "%s v%d.4s, v%d.4s", name, d, n)
}

// Fmaxnmv leaves the largest number of n in d's first element.
func (f *File) Fmaxnmv(d, n int) { f.across(0x6e30c800, "fmaxnmv", d, n) }

func (f *File) across(op uint32, name string, d, n int) {
	f.word(op|uint32(n)<<5|uint32(d), "%s s%d, v%d.4s", name, d, n)
}
