package model_test

import (
	"encoding/binary"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/grovellm/grove/internal/files/numtype"
	"github.com/grovellm/grove/internal/kernels/codebook"
	"github.com/grovellm/grove/internal/kernels/num"
	"github.com/grovellm/grove/internal/kernels/par"
	"github.com/grovellm/grove/internal/model"
	"github.com/grovellm/grove/tensor"
	"pgregory.net/rapid"
)

// Whatever bits a file of any type holds, products use exactly the numbers that they encode.
func TestLoadingLosesNothing(t *testing.T) {
	types := []tensor.Type{tensor.F32, tensor.F16, tensor.BF16, tensor.Q4_0, tensor.Q4_1, tensor.Q5_0, tensor.Q5_1,
		tensor.Q8_0, tensor.Q4_K, tensor.Q5_K, tensor.Q6_K, numtype.Q2_K, numtype.Q3_K,
		numtype.IQ1_S, numtype.IQ1_M, numtype.IQ2_XXS, numtype.IQ2_XS, numtype.IQ2_S, numtype.IQ3_XXS, numtype.IQ3_S,
		numtype.TQ1_0, numtype.TQ2_0, numtype.Q1_0, numtype.Q2_0}
	pool := par.New(2)
	rapid.Check(t, func(t *rapid.T) {
		typ := rapid.SampledFrom(types).Draw(t, "type")
		block, bytes := typ.Block()
		rows, cols := rapid.IntRange(1, 70).Draw(t, "rows"), block*rapid.IntRange(1, 4).Draw(t, "blocks")
		r := rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 0))
		x := tensor.Tensor{Name: "x", Type: typ, Shape: []int{rows, cols}, Data: make([]byte, rows*cols/block*bytes)}
		for i := range x.Data {
			x.Data[i] = byte(r.Uint32())
		}
		if typ == tensor.F32 { // no NaNs: conversions may change their bits
			for i := 0; i < len(x.Data); i += 4 {
				binary.LittleEndian.PutUint32(x.Data[i:], math.Float32bits(r.Float32()))
			}
		}
		code, coded := codebook.Named(typ.String())
		for b := 0; b < len(x.Data); b += bytes { // scales that are numbers: zero, subnormal, ordinary, negative
			for _, at := range map[tensor.Type][]int{tensor.F16: {0}, tensor.BF16: {0}, tensor.Q4_0: {0}, tensor.Q5_0: {0},
				tensor.Q8_0: {0}, tensor.Q4_1: {0, 2},
				tensor.Q5_1: {0, 2}, tensor.Q4_K: {0, 2}, tensor.Q5_K: {0, 2}, tensor.Q6_K: {208},
				numtype.Q2_K: {80, 82}, numtype.Q3_K: {108}}[typ] {
				binary.LittleEndian.PutUint16(x.Data[b+at:], num.ToF16(float32(r.NormFloat64()*math.Ldexp(1, r.IntN(40)-28))))
			}
		}
		for b := 0; coded && b < len(x.Data); b += bytes {
			code.SetScale(x.Data[b:b+bytes], float32(r.NormFloat64()*math.Ldexp(1, r.IntN(40)-28)))
		}
		l := model.NewLoader([]tensor.Tensor{x}, "test")
		m, err := l.Matrix("x", rows, cols)
		if err == nil {
			err = l.Pack(pool)
		}
		if err != nil {
			t.Fatal(err)
		}
		if want := model.ProductType(typ, cols); m.Type() != want || model.ProductType(model.FileType(want), cols) != want {
			t.Fatalf("%v is multiplied as %v, whose files are of %v", typ, m.Type(), model.FileType(m.Type()))
		}
		want, got := make([]float32, cols), make([]float32, cols)
		for i := range rows {
			m.Row(got, i)
			if err := x.DequantizeRows(want, i, i+1); err != nil {
				t.Fatal(err)
			}
			for k := range want {
				if got[k] != want[k] {
					t.Fatalf("%v: row %d element %d is %v, the file says %v", typ, i, k, got[k], want[k])
				}
			}
		}
	})
}
