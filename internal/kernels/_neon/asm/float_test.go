package asm

import (
	"strings"
	"testing"
)

// The words are those of LLVM's assembler for the text beside them.
func TestEncodings(t *testing.T) {
	for _, c := range []struct {
		write func(f *File)
		want  string
	}{
		{func(f *File) { f.Fadd(31, 0, 17) }, "WORD $0x4e31d41f // fadd v31.4s, v0.4s, v17.4s"},
		{func(f *File) { f.Fsub(1, 2, 3) }, "WORD $0x4ea3d441 // fsub v1.4s, v2.4s, v3.4s"},
		{func(f *File) { f.Fmul(1, 30, 3) }, "WORD $0x6e23dfc1 // fmul v1.4s, v30.4s, v3.4s"},
		{func(f *File) { f.Fdiv(1, 2, 31) }, "WORD $0x6e3ffc41 // fdiv v1.4s, v2.4s, v31.4s"},
		{func(f *File) { f.Faddp(1, 30, 3) }, "WORD $0x6e23d7c1 // faddp v1.4s, v30.4s, v3.4s"},
		{func(f *File) { f.Frintn(7, 25) }, "WORD $0x4e218b27 // frintn v7.4s, v25.4s"},
		{func(f *File) { f.Fmin(9, 18, 27) }, "WORD $0x4ebbf649 // fmin v9.4s, v18.4s, v27.4s"},
		{func(f *File) { f.Fmaxnm(10, 20, 30) }, "WORD $0x4e3ec68a // fmaxnm v10.4s, v20.4s, v30.4s"},
		{func(f *File) { f.Fcmeq(1, 2, 3) }, "WORD $0x4e23e441 // fcmeq v1.4s, v2.4s, v3.4s"},
		{func(f *File) { f.Fcmge(31, 30, 29) }, "WORD $0x6e3de7df // fcmge v31.4s, v30.4s, v29.4s"},
		{func(f *File) { f.Fcmgt(4, 5, 6) }, "WORD $0x6ea6e4a4 // fcmgt v4.4s, v5.4s, v6.4s"},
		{func(f *File) { f.FmulElem(1, 2, 31, 3) }, "WORD $0x4fbf9841 // fmul v1.4s, v2.4s, v31.s[3]"},
		{func(f *File) { f.FmlsElem(30, 17, 4, 2) }, "WORD $0x4f845a3e // fmls v30.4s, v17.4s, v4.s[2]"},
		{func(f *File) { f.FmlaElem(0, 31, 16, 1) }, "WORD $0x4fb013e0 // fmla v0.4s, v31.4s, v16.s[1]"},
		{func(f *File) { f.FmlaElem(21, 10, 15, 0) }, "WORD $0x4f8f1155 // fmla v21.4s, v10.4s, v15.s[0]"},
		{func(f *File) { f.Fabs(7, 25) }, "WORD $0x4ea0fb27 // fabs v7.4s, v25.4s"},
		{func(f *File) { f.Fneg(25, 7) }, "WORD $0x6ea0f8f9 // fneg v25.4s, v7.4s"},
		{func(f *File) { f.Fmaxnmv(3, 20) }, "WORD $0x6e30ca83 // fmaxnmv s3, v20.4s"},
		{func(f *File) { f.Bic(1, 2, 3) }, "WORD $0x4e631c41 // bic v1.16b, v2.16b, v3.16b"},
		{func(f *File) { f.Cmlt0(17, 8) }, "WORD $0x4ea0a911 // cmlt v17.4s, v8.4s, #0"},
		{func(f *File) { f.Umaxv(0, 31) }, "WORD $0x6eb0abe0 // umaxv s0, v31.4s"},
		{func(f *File) { f.Nibbles(2, 9) }, "WORD $0x0f0c8522 // shrn v2.8b, v9.8h, #4"},
	} {
		f := &File{}
		c.write(f)
		if got := strings.TrimSpace(f.text.String()); got != c.want {
			t.Errorf("wrote %s, want %s", got, c.want)
		}
	}
}
