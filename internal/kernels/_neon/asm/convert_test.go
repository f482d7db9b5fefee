package asm

import (
	"strings"
	"testing"
)

// The encodings are those of LLVM's assembler.
func TestWords(t *testing.T) {
	f := New("test")
	f.Sdot(1, 2, 3)
	f.SdotElem(31, 30, 29, 0)
	f.SdotElem(1, 2, 31, 1)
	f.SdotElem(1, 2, 31, 3)
	f.Smmla(1, 2, 3)
	f.Smmla(31, 30, 17)
	f.Usmmla(1, 30, 3)
	f.Usmmla(31, 2, 17)
	f.Fcvtl(1, 2)
	f.Fcvtl2(31, 30)
	f.IntToFloat(1, 2)
	f.UintToFloat(31, 30)
	f.IntFromFloat(1, 30)
	f.IntToFloat32nd(31, 2)
	f.SxtlB(1, 2)
	f.SxtlH(31, 30)
	f.Sxtl2H(1, 2)
	f.Addv(31, 2)
	f.Cmhi(1, 2, 31)
	f.Cmeq0(1, 30)
	f.Zero(17)
	want := `0x4e839441 // sdot v1.4s, v2.16b, v3.16b
0x4f9de3df // sdot v31.4s, v30.16b, v29.4b[0]
0x4fbfe041 // sdot v1.4s, v2.16b, v31.4b[1]
0x4fbfe841 // sdot v1.4s, v2.16b, v31.4b[3]
0x4e83a441 // smmla v1.4s, v2.16b, v3.16b
0x4e91a7df // smmla v31.4s, v30.16b, v17.16b
0x4e83afc1 // usmmla v1.4s, v30.16b, v3.16b
0x4e91ac5f // usmmla v31.4s, v2.16b, v17.16b
0x0e217841 // fcvtl v1.4s, v2.4h
0x4e217bdf // fcvtl2 v31.4s, v30.8h
0x4e21d841 // scvtf v1.4s, v2.4s
0x6e21dbdf // ucvtf v31.4s, v30.4s
0x4e21abc1 // fcvtns v1.4s, v30.4s
0x4f3be45f // scvtf v31.4s, v2.4s, #5
0x0f08a441 // sxtl v1.8h, v2.8b
0x0f10a7df // sxtl v31.4s, v30.4h
0x4f10a441 // sxtl2 v1.4s, v2.8h
0x4eb1b85f // addv s31, v2.4s
0x6ebf3441 // cmhi v1.4s, v2.4s, v31.4s
0x4ea09bc1 // cmeq v1.4s, v30.4s, #0
0x6f00e411 // movi v17.2d, #0
`
	_, got, _ := strings.Cut(f.text.String(), "\"textflag.h\"\n")
	got = strings.ReplaceAll(got, "\tWORD $", "")
	if got != want {
		t.Errorf("got\n%swant\n%s", got, want)
	}
}
