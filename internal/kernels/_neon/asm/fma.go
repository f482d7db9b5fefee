package asm

// FmlaElem computes d = d + n · m[index] on four f32, rounded once.
func (f *File) FmlaElem(d, n, m, index int) {
	f.byElem(0x4f801000, "fmla", d, n, m, index)
}

// Fmla computes d = d + n · m on four f32, rounded once.
func (f *File) Fmla(d, n, m int) { f.I("VFMLA V%d.S4, V%d.S4, V%d.S4", m, n, d) }

// Fmls computes d = d - n · m on four f32, rounded once.
func (f *File) Fmls(d, n, m int) { f.I("VFMLS V%d.S4, V%d.S4, V%d.S4", m, n, d) }
