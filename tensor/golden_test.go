package tensor

import (
	_ "embed"
	"encoding/base64"
	"encoding/binary"
	"fmt"
	"github.com/grovellm/grove/internal/files/numtype"
	"hash/fnv"
	"math"
	"slices"
	"strings"
	"testing"
)

//go:embed testdata/golden.txt
var golden string

// lcg is Knuth's MMIX generator: simple enough to write again in C.
type lcg uint64

func (s *lcg) next() uint32 {
	*s = *s*6364136223846793005 + 1442695040888963407
	return uint32(*s >> 32)
}

// input is six super-blocks of different character: even in ±1, small, large, tiny, zero, and far from zero.
func input() []float32 {
	s, x := lcg(1), make([]float32, 1536)
	scale := []float32{1, 1.0 / 128, 96, 1.0 / (1 << 20), 0, 1}
	for i := range x {
		x[i] = float32(int32(s.next())) * (1.0 / (1 << 31)) * scale[i/256]
		if i/256 == 5 {
			x[i] = float32(x[i]*0.25) + 1
		}
	}
	return x
}

// goldenTypes is the order of the file, which seeds the random blocks.
var goldenTypes = []Type{F32, F16, BF16, Q4_0, Q4_1, Q5_0, Q5_1, Q8_0, Q4_K, Q5_K, Q6_K, MXFP4,
	IQ4_NL, numtype.IQ4_XS, numtype.Q3_K, numtype.Q2_K,
	numtype.IQ1_S, numtype.IQ1_M, numtype.IQ2_XXS, numtype.IQ2_XS, numtype.IQ2_S, numtype.IQ3_XXS, numtype.IQ3_S,
	numtype.TQ1_0, numtype.TQ2_0, numtype.Q1_0, numtype.Q2_0}

// halfAt is where a block keeps its half-precision numbers.
var halfAt = map[Type][]int{Q4_0: {0}, Q5_0: {0}, Q8_0: {0}, Q4_1: {0, 2}, Q5_1: {0, 2}, Q4_K: {0, 2}, Q5_K: {0, 2},
	Q6_K: {208}, F32: {2}, F16: {0}, BF16: {0},
	IQ4_NL: {0}, numtype.IQ4_XS: {0}, numtype.Q3_K: {108}, numtype.Q2_K: {80, 82},
	numtype.IQ1_S: {0}, numtype.IQ1_M: {54}, numtype.IQ2_XXS: {0}, numtype.IQ2_XS: {0}, numtype.IQ2_S: {0},
	numtype.IQ3_XXS: {0}, numtype.IQ3_S: {0}, numtype.TQ1_0: {52}, numtype.TQ2_0: {64},
	numtype.Q1_0: {0}, numtype.Q2_0: {0}}

// randomBlocks is random bits, with one exponent bit of each scale cleared to keep it finite.
func randomBlocks(t Type, blocks int) []byte {
	_, size := t.Block()
	s, b := lcg(100+slices.Index(goldenTypes, t)), make([]byte, blocks*size)
	for i := range b {
		b[i] = byte(s.next() >> 24)
	}
	for i := range blocks {
		for _, h := range halfAt[t] {
			b[i*size+h+1] &= 0xbf
		}
	}
	return b
}

func sum(b []byte) string {
	h := fnv.New64a()
	h.Write(b)
	return fmt.Sprintf("%016x", h.Sum64())
}

func f32Bytes(x []float32) []byte {
	b := make([]byte, 0, 4*len(x))
	for _, v := range x {
		b = binary.LittleEndian.AppendUint32(b, math.Float32bits(v))
	}
	return b
}

func TestGolden(t *testing.T) {
	lines := 0
	for line := range strings.Lines(golden) {
		w := strings.Fields(line)
		if w[0] == "#" {
			continue
		}
		lines++
		typ, err := ParseType(w[1])
		if err != nil {
			t.Fatal(err)
		}
		t.Run(w[0]+" "+w[1], func(t *testing.T) {
			if w[0] == "quantize" {
				goldenQuantize(t, typ, w[2:])
				return
			}
			var blocks int
			fmt.Sscan(w[2], &blocks)
			src := randomBlocks(typ, blocks)
			n, _ := typ.Block()
			dst := make([]float32, blocks*n)
			if err := Dequantize(typ, src, dst); err != nil {
				t.Fatal(err)
			}
			if got := sum(f32Bytes(dst)); got != w[3] {
				t.Errorf("random blocks decode to %s, want %s", got, w[3])
			}
		})
	}
	if want := 2*len(goldenTypes) - 15; lines != want { // fifteen of them are only read
		t.Errorf("%d golden lines, want %d", lines, want)
	}
}

func goldenQuantize(t *testing.T, typ Type, want []string) {
	x := input()
	size, err := typ.Size(len(x))
	if err != nil {
		t.Fatal(err)
	}
	q := make([]byte, size)
	if n, _ := typ.Block(); n < 256 {
		if err := Quantize(typ, x, q); err != nil {
			t.Fatal(err)
		}
	} else if q, err = base64.StdEncoding.DecodeString(want[6]); err != nil {
		t.Fatal(err)
	}
	if got := sum(q); got != want[0] {
		t.Fatalf("encoded bytes %s, want %s", got, want[0])
	}
	y := make([]float32, len(x))
	if err := Dequantize(typ, q, y); err != nil {
		t.Fatal(err)
	}
	for i, w := range want[2:6] {
		if got := fmt.Sprintf("%08x", math.Float32bits(y[400*i+7])); got != w {
			t.Errorf("element %d is %s, want %s", 400*i+7, got, w)
		}
	}
	if got := sum(f32Bytes(y)); got != want[1] {
		t.Errorf("decoded values %s, want %s", got, want[1])
	}
}
