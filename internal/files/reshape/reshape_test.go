package reshape_test

import (
	"bytes"
	"math"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/grovellm/grove/internal/files/numtype"
	"github.com/grovellm/grove/internal/files/reshape"
	"github.com/grovellm/grove/tensor"
)

var types = []tensor.Type{tensor.F32, tensor.F16, tensor.BF16, tensor.Q4_0, tensor.Q4_1, tensor.Q5_0, tensor.Q5_1,
	tensor.Q8_0, tensor.Q4_K, tensor.Q5_K, tensor.Q6_K}

// A matrix cut into columns and joined again is unchanged, and every cut has the numbers of its columns.
func TestColumnsAndJoin(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		typ := rapid.SampledFrom(types).Draw(t, "type")
		n, size := typ.Block()
		rows, blocks := rapid.IntRange(1, 6).Draw(t, "rows"), rapid.IntRange(1, 5).Draw(t, "blocks")
		x := tensor.Tensor{Name: "x", Type: typ, Shape: []int{rows, blocks * n}}
		x.Data = rapid.SliceOfN(rapid.Byte(), rows*blocks*size, rows*blocks*size).Draw(t, "data")
		all, err := x.Float32s()
		if err != nil {
			t.Fatal(err)
		}
		var parts []tensor.Tensor
		for from := 0; from < blocks; {
			to := rapid.IntRange(from+1, blocks).Draw(t, "to")
			p, err := reshape.Columns(x, from*n, to*n)
			if err != nil {
				t.Fatal(err)
			}
			values, err := p.Float32s()
			if err != nil {
				t.Fatal(err)
			}
			for r := range rows {
				got, want := values[r*p.Cols():(r+1)*p.Cols()], all[r*blocks*n+from*n:r*blocks*n+to*n]
				if !slices.EqualFunc(got, want, sameBits) {
					t.Fatalf("row %d of columns %d to %d", r, from*n, to*n)
				}
			}
			parts, from = append(parts, p), to
		}
		y, err := reshape.Join("x", parts...)
		if err != nil || !slices.Equal(y.Shape, x.Shape) || !bytes.Equal(y.Data, x.Data) {
			t.Fatalf("joined: %v of shape %v, %v", y.Type, y.Shape, err)
		}
		for _, cut := range [][2]int{{0, 0}, {-n, n}, {0, (blocks + 1) * n}, {0, 1}} {
			if _, err := reshape.Columns(x, cut[0], cut[1]); err == nil && n > 1 {
				t.Fatalf("columns %v of %v are no error", cut, x.Shape)
			}
		}
	})
	a, b := tensor.Tensor{Name: "a", Type: numtype.I8, Shape: []int{2, 1}, Data: make([]byte, 2)},
		tensor.Tensor{Name: "b", Type: numtype.I8,
			Shape: []int{3, 1}, Data: make([]byte, 3)}
	if _, err := reshape.Join("x", a, b); err == nil {
		t.Error("2 rows beside 3 are no error")
	}
	if _, err := reshape.Join("x"); err == nil {
		t.Error("nothing joined is no error")
	}
}

// Rows in another order and then in the inverse order are as they were, and so are a vector's elements.
func TestReordered(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(1, 20).Draw(t, "n")
		there := rapid.Permutation(indexes(n)).Draw(t, "order")
		back := make([]int, n)
		for i, r := range there {
			back[r] = i
		}
		for _, x := range []tensor.Tensor{
			{Name: "matrix", Type: tensor.Q8_0, Shape: []int{n, 32}, Data: rapid.SliceOfN(rapid.Byte(), n*34,
				n*34).Draw(t, "matrix")},
			{Name: "vector", Type: tensor.F32, Shape: []int{n}, Data: rapid.SliceOfN(rapid.Byte(), n*4, n*4).Draw(t, "vector")},
		} {
			y, err := reshape.Reordered(x, func(i int) int { return there[i] })
			if err != nil {
				t.Fatal(err)
			}
			size := len(x.Data) / n
			for i, r := range there {
				if !bytes.Equal(y.Data[i*size:(i+1)*size], x.Data[r*size:(r+1)*size]) {
					t.Fatalf("%s: row %d is not row %d", x.Name, i, r)
				}
			}
			z, err := reshape.Reordered(y, func(i int) int { return back[i] })
			if err != nil || !bytes.Equal(z.Data, x.Data) {
				t.Fatalf("%s does not come back, %v", x.Name, err)
			}
			if _, err := reshape.Reordered(x, func(i int) int { return i + 1 }); err == nil {
				t.Fatalf("%s: a row that is not there is no error", x.Name)
			}
		}
	})
}

// sameBits holds for numbers that are not any too.
func sameBits(a, b float32) bool { return math.Float32bits(a) == math.Float32bits(b) }

func indexes(n int) (list []int) {
	for i := range n {
		list = append(list, i)
	}
	return list
}
