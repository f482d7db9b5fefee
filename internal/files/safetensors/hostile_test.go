package safetensors

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/grovellm/grove/internal/files/fileerr"
	"github.com/grovellm/grove/internal/files/infile"
	"github.com/grovellm/grove/internal/testing/hostile"
	"github.com/grovellm/grove/internal/testing/testfile"
	"github.com/grovellm/grove/tensor"
)

// file puts a header before n bytes of data.
func file(header string, n int) []byte {
	b := binary.LittleEndian.AppendUint64(nil, uint64(len(header)))
	return append(append(b, header...), make([]byte, n)...)
}

// Every kind of damage has its own message.
func TestHostile(t *testing.T) {
	one := func(body string) string { return `{"x":{` + body + `}}` }
	for name, c := range map[string]struct {
		data []byte
		want string
	}{
		"empty":               {nil, "the file has 0 bytes"},
		"length cut":          {make([]byte, 7), "the file has 7 bytes"},
		"no header":           {make([]byte, 8), "not a safetensors file"},
		"length beyond file":  {binary.LittleEndian.AppendUint64(nil, 9), "its 9 bytes go beyond the end"},
		"length beyond limit": {binary.LittleEndian.AppendUint64(nil, 1<<63), "not a safetensors file"},
		"not JSON":            {file("{]", 0), "not valid JSON"},
		"not an object":       {file("[]", 0), "not a safetensors file"},
		"cut JSON":            {file(`{"x":{"dtype":"F32"`, 0), "EOF"},
		"text after":          {file(`{} {}`, 0), "after its closing brace"},
		"not UTF-8":           {file("{\"\xff\":{}}", 0), "UTF-8"},
		"tensor not object":   {file(`{"x":3}`, 0), "where { is expected"},
		"missing fields":      {file(one(`"dtype":"F32","shape":[1]`), 4), "lacks dtype, shape"},
		"one offset":          {file(one(`"dtype":"F32","shape":[1],"data_offsets":[0]`), 4), "lacks dtype, shape"},
		"three offsets":       {file(one(`"dtype":"F32","shape":[1],"data_offsets":[0,4,4]`), 4), "more than 2"},
		"backwards":           {file(one(`"dtype":"F32","shape":[1],"data_offsets":[4,0]`), 4), "run backwards"},
		"negative":            {file(one(`"dtype":"F32","shape":[-1],"data_offsets":[0,4]`), 4), "-1 is not an integer"},
		"fraction":            {file(one(`"dtype":"F32","shape":[1.0],"data_offsets":[0,4]`), 4), "1.0 is not an integer"},
		"beyond int":          {file(one(`"dtype":"F32","shape":[18446744073709551616],"data_offsets":[0,4]`), 4), "is not an integer"},
		"string dimension":    {file(one(`"dtype":"F32","shape":["1"],"data_offsets":[0,4]`), 4), "where a number"},
		"dtype a number":      {file(one(`"dtype":3,"shape":[1],"data_offsets":[0,4]`), 4), "where a string"},
		"dtype twice":         {file(one(`"dtype":"F32","dtype":"F32","shape":[1],"data_offsets":[0,4]`), 4), `"dtype" occurs twice`},
		"shape overflows":     {file(one(`"dtype":"F32","shape":[2147483647,2147483647,8],"data_offsets":[0,4]`), 4), "overflows"},
		"shape not bytes": {file(one(`"dtype":"F32","shape":[2],"data_offsets":[0,4]`), 4),
			"takes 8 bytes, its data_offsets span 4"},
		"beyond file":  {file(one(`"dtype":"F32","shape":[2],"data_offsets":[0,8]`), 4), "beyond the end of the file"},
		"gap at start": {file(one(`"dtype":"F32","shape":[1],"data_offsets":[4,8]`), 8), "the tensors before it end at 0"},
		"bytes at end": {file(one(`"dtype":"F32","shape":[1],"data_offsets":[0,4]`), 5), "1 bytes at the end"},
		"overlap": {file(`{"x":{"dtype":"U8","shape":[4],"data_offsets":[0,4]},"y":{"dtype":"U8","shape":[4],"data_offsets":[2,6]}}`, 6),
			`tensor "y": its data at 2 overlaps`},
		"name twice": {file(`{"x":{"dtype":"U8","shape":[1],"data_offsets":[0,1]},"x":{"dtype":"U8","shape":[1],"data_offsets":[1,2]}}`, 2), `"x": occurs twice`},
		"metadata":   {file(`{"__metadata__":{"a":1}}`, 0), "__metadata__: want an object of strings"},
		"metadata 2": {file(`{"__metadata__":{"a":"1","a":"2"}}`, 0), `"a" occurs twice`},
		"deep":       {file(one(`"more":`+strings.Repeat("[", 20000)), 0), "depth"},
		"many dims": {file(one(`"dtype":"F32","shape":[`+strings.Repeat("1,", 100)+`1],"data_offsets":[0,4]`), 4),
			"more than 64"},
	} {
		path := filepath.Join(t.TempDir(), "bad.safetensors")
		testfile.Write(t, path, c.data)
		_, err := Open(path)
		var fe *fileerr.Error
		if !errors.As(err, &fe) || fe.File != path || fe.Field == "" || fe.Remedy == "" ||
			!strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want %q", name, err, c.want)
		}
	}
}

// Legal oddities: padding, unknown fields, tensors without elements, unknown dtypes (listed, but not loaded).
func TestOddities(t *testing.T) {
	path := filepath.Join(t.TempDir(), "odd.safetensors")
	most := strconv.Itoa(math.MaxInt)
	header := `{ "f4":{"dtype":"F4","shape":[2],"data_offsets":[0,1]}, "x":{"dtype":"BF16","shape":[],"data_offsets":[1,3],"note":{"a":[1,2]}},
		"none":{"dtype":"F32","shape":[0,` + most + `],"data_offsets":[3,3]}, "i":{"dtype":"I64","shape":[1],"data_offsets":[3,11]}}   `
	testfile.Write(t, path, file(header, 11))
	f, err := Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if len(f.Tensors) != 4 {
		t.Errorf("tensors %v", f.Tensors)
	}
	if x := must(must(f.Load("x")).ReadAll()); len(x.Data) != 2 || x.Elements() != 1 {
		t.Errorf("a scalar is %v", x)
	}
	for name, want := range map[string]string{"f4": `tensor "f4": is of dtype "F4"`, "i": `tensor "i": is of dtype "I64"`,
		"zz": `tensor "zz": is not in the file`} {
		if _, err := f.Load(name); err == nil || !strings.HasPrefix(err.Error(), "safetensors: "+path+": "+want) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if x, ok := f.Tensor("i"); !ok || len(must(x.ReadAll()).Data) != 8 {
		t.Error("the bytes of an I64 cannot be had")
	}
}

func TestCutAndFlipped(t *testing.T) {
	w, b := NewWriter(), &bytes.Buffer{}
	w.SetMetadata("format", "pt")
	w.AddTensor(must(tensor.FromFloat32s("a.weight", tensor.BF16, []int{2, 3}, make([]float32, 6))))
	w.AddTensor(must(tensor.FromFloat32s("b.weight", tensor.F32, []int{5}, make([]float32, 5))))
	must(w.WriteTo(b))
	data := b.Bytes()
	for n := range data {
		if _, err := parse(data[:n:n]); err == nil {
			t.Fatalf("cut to %d of %d bytes it is read", n, len(data))
		}
	}
	for i := range data {
		for _, x := range []byte{0, 1, 0x7f, 0xff, '"', '{', '}', '9', data[i] + 1} {
			old := data[i]
			data[i] = x
			walk(data)
			data[i] = old
		}
	}
}

// walk parses and looks at all data.
func walk(data []byte) (*header, error) {
	h, err := parse(data)
	if err != nil {
		return nil, err
	}
	for _, t := range h.tensors {
		x := tensor.Tensor{Name: t.Name, Type: t.Type, Shape: t.Shape, Data: data[t.Offset : t.Offset+t.Size]}
		if x.Elements() > 0 && x.Type.Decodes() {
			must(x.Float32s())
		}
	}
	return h, nil
}

// FuzzSafetensors: no bytes make the parser panic or take much memory; what it accepts covers the data
// exactly. A part of the header is repeated, so that small inputs make large files.
func FuzzSafetensors(f *testing.F) {
	add := func(data []byte) { f.Add(data, uint16(0), uint16(0), uint16(0)) }
	add(file(`{"__metadata__":{"format":"pt"},"x":{"dtype":"BF16","shape":[2,3],"data_offsets":[0,12]},"y":{"dtype":"F32","shape":[],"data_offsets":[12,16]}} `, 16))
	add(file(`{"x":{"dtype":"F4","shape":[2],"data_offsets":[0,1],"more":[{}]}}`, 1))
	add(file(`{}`, 0))
	for _, bad := range []string{`{"x":{"dtype":"F32","shape":[18446744073709551615],"data_offsets":[0,4]}}`, `{"x":{"shape":[1],}}`,
		`{"a":{},"a":{}}`, `{"\ud800":{}}`} {
		add(file(bad, 4))
	}
	for _, r := range []string{"[", "[],", `"x",`, `{"a":`, `"a":1,`} {
		f.Add(file(`{"x":{"more":[`+r+`]}}`, 0), uint16(22), uint16(len(r)), uint16(60_000))
	}
	f.Add(file(`{"__metadata__":{}}`, 0), uint16(24), uint16(0), uint16(9))
	f.Add(file(`{"x":{"dtype":"F4","shape":[1,],"data_offsets":[0,0]}}`, 0), uint16(8+28), uint16(2), uint16(60_000))
	f.Fuzz(func(t *testing.T, data []byte, from, n, times uint16) {
		if end := int(from) + int(n); n > 0 && from >= 8 && end <= len(data) && int(n)*int(times) <= 1<<20 {
			middle := bytes.Repeat(data[from:end], int(times))
			length := binary.LittleEndian.Uint64(data) + uint64(len(middle))
			data = slices.Concat(binary.LittleEndian.AppendUint64(nil, length), data[8:end], middle, data[end:])
		}
		hostile.Check(t, len(data), func() { _, _ = parseAny(infile.OpenMemory("", data)) })
		h, err := walk(data)
		if err != nil {
			if e := (*fileerr.Error)(nil); !errors.As(err, &e) || e.Field == "" || e.Remedy == "" {
				t.Fatalf("an error without field or remedy: %v", err)
			}
			return
		}
		at := 8 + int64(binary.LittleEndian.Uint64(data))
		for _, x := range h.tensors {
			if x.Offset != at {
				t.Fatalf("%q lies at %d, want %d", x.Name, x.Offset, at)
			}
			at += x.Size
		}
		if at != int64(len(data)) {
			t.Fatalf("the data ends at %d of %d", at, len(data))
		}
	})
}

// FuzzIndex: the same for the index of a folder of shards, next to two good ones and a bad one.
func FuzzIndex(f *testing.F) {
	dir := f.TempDir()
	write := func(t testfile.Test, name string, data []byte) {
		t.Helper()
		testfile.Write(t, filepath.Join(dir, name), data)
	}
	write(f, "a", file(`{"x":{"dtype":"U8","shape":[1],"data_offsets":[0,1]}}`, 1))
	write(f, "b", file(`{"y":{"dtype":"U8","shape":[1],"data_offsets":[0,1]},"z":{"dtype":"U8","shape":[1],"data_offsets":[1,2]}}`, 2))
	write(f, "c", []byte("no shard"))
	for _, s := range []string{
		`{"metadata":{"total_size":3},"weight_map":{"x":"a","y":"b","z":"b"}}`, `{"weight_map":{"x":"a"}}`,
		`{"weight_map":{"x":"b","y":"a"}}`,
		`{"weight_map":{"x":"c"}}`, `{"weight_map":{"x":"../a"}}`, `{"weight_map":{"x":"nowhere"}}`, `{"weight_map":{}}`,
		`{"weight_map":[]}`, `{`, `[]`,
		`{"weight_map":{"x":"a"},"weight_map":{"y":"b"}}`,
	} {
		f.Add([]byte(s), uint16(0), uint16(0), uint16(0))
	}
	f.Add([]byte(`{"x":[[],0],"weight_map":{"x":"a"}}`), uint16(6), uint16(3), uint16(60_000))
	f.Add([]byte(`{"x":[0],"weight_map":{"x":"a"}}`), uint16(5), uint16(1), uint16(60_000))
	f.Fuzz(func(t *testing.T, index []byte, from, n, times uint16) {
		if end := int(from) + int(n); n > 0 && end <= len(index) && int(n)*int(times) <= 1<<20 {
			index = slices.Concat(index[:end], bytes.Repeat(index[from:end], int(times)), index[end:])
		}
		write(t, singleName+indexEnd, index)
		hostile.Check(t, len(index), func() {
			s, err := Open(dir)
			if err != nil {
				if e := (*fileerr.Error)(nil); !errors.As(err, &e) || e.File == "" || e.Remedy == "" {
					t.Fatalf("an error without file or remedy: %v", err)
				}
				return
			}
			for _, x := range s.Tensors {
				x, _ := s.Tensor(x.Name)
				if x, err = x.ReadAll(); err != nil || len(x.Data) != 1 {
					t.Errorf("tensor %s: %v %v", x.Name, x, err)
				}
			}
			if err := s.Close(); err != nil {
				t.Error(err)
			}
		})
	})
}

// The files that take the most memory for each of their bytes.
func TestMemory(t *testing.T) {
	many := func(before, one, after string, n int) []byte {
		var b strings.Builder
		b.WriteString(before)
		for i := range n {
			if i > 0 {
				b.WriteByte(',')
			}
			fmt.Fprintf(&b, one, i)
		}
		return []byte(b.String() + after)
	}
	one := `"%x":{"dtype":"U8","shape":[0],"data_offsets":[0,0]}`
	for name, header := range map[string][]byte{
		"tensors":     many("{", one, "}", 80_000),
		"metadata":    many(`{"__metadata__":{`, `"%x":""`, "}}", 300_000),
		"dimensions":  many("{", `"%x":{"dtype":"U8","shape":[0`+strings.Repeat(",0", 63)+`],"data_offsets":[0,0]}`, "}", 4_000),
		"skipped":     many(`{"x":{"more":[`, "%d", "]}}", 500_000),
		"nested":      []byte(`{"x":{"more":` + strings.Repeat("[", 4<<20)),
		"long string": []byte(`{"x":{"more":"` + strings.Repeat("x", 16<<20) + `"}}`),
		"long name":   []byte(`{"` + strings.Repeat(`\n`, 8<<20) + `":{}}`),
	} {
		t.Run(name, func(t *testing.T) {
			data := file(string(header), 0)
			hostile.Check(t, len(data), func() { _, _ = parse(data) })
		})
	}
	t.Run("index", func(t *testing.T) {
		index := filepath.Join(t.TempDir(), "index.json")
		data := many(`{"weight_map":{`, `"%x":""`, "}}", 150_000)
		testfile.Write(t, index, data)
		hostile.Check(t, len(data), func() { _, _ = readIndex(index) })
	})
}
