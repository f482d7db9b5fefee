package testdata

import (
	"archive/zip"
	"bytes"
	"encoding/binary"
	"fmt"
	"maps"
	"slices"
	"testing"
)

// Array is a tensor of a PyTorch file: 32-bit little-endian numbers.
type Array struct {
	Shape []int
	Data  []byte
}

// Torch returns a PyTorch file with a dictionary of tensors.
func Torch(t testing.TB, arrays map[string]Array) []byte {
	t.Helper()
	var p, out bytes.Buffer
	number := func(n int) { p.Write(binary.LittleEndian.AppendUint32([]byte{'J'}, uint32(n))) }
	text := func(s string) { p.WriteString("X" + string([]byte{byte(len(s)), 0, 0, 0}) + s) }
	tuple := func(ns ...int) {
		p.WriteByte('(')
		for _, n := range ns {
			number(n)
		}
		p.WriteByte('t')
	}
	z := zip.NewWriter(&out)
	add := func(name string, data []byte) {
		w, err := z.CreateHeader(&zip.FileHeader{Name: "x/" + name, Method: zip.Store})
		if err == nil {
			_, err = w.Write(data)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	p.WriteString("\x80\x02}(")
	for i, name := range slices.Sorted(maps.Keys(arrays)) {
		x := arrays[name]
		text(name)
		p.WriteString("ctorch._utils\n_rebuild_tensor_v2\n((")
		text("storage")
		p.WriteString("ctorch\nFloatStorage\n")
		text(fmt.Sprint(i))
		text("cpu")
		number(len(x.Data) / 4)
		p.WriteString("tQ")
		number(0)
		tuple(x.Shape...)
		if len(x.Shape) == 2 {
			tuple(x.Shape[1], 1)
		} else {
			tuple(1)
		}
		p.WriteString("\x89}tR")
		add(fmt.Sprint("data/", i), x.Data)
	}
	p.WriteString("u.")
	add("data.pkl", p.Bytes())
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}
