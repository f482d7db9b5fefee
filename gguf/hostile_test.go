package gguf

import (
	"bytes"
	"encoding/binary"
	"errors"
	"io/fs"
	"math"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/grovellm/grove/internal/files/fileerr"
	"github.com/grovellm/grove/internal/files/numtype"
	"github.com/grovellm/grove/internal/testing/hostile"
	"github.com/grovellm/grove/internal/testing/testfile"
	"github.com/grovellm/grove/tensor"
)

// small is a file with a bit of everything.
func small() []byte {
	w, b := new(Writer), &bytes.Buffer{}
	w.Set("general.architecture", "qwen3")
	w.Set("general.alignment", uint32(32))
	w.Set("tokens", []string{"a", "", "é"})
	w.Set("scores", []float32{1, -2})
	w.Set("nested", []Value{must(valueOf([]int32{1, 2})), must(valueOf([]int32{}))})
	w.Set("flag", true)
	w.AddTensor(tensor.Tensor{Name: "a.weight", Type: tensor.Q8_0, Shape: []int{2, 32}, Data: make([]byte, 68)})
	w.AddTensor(tensor.Tensor{Name: "b.weight", Type: tensor.F32, Shape: []int{3}, Data: make([]byte, 12)})
	must(w.WriteTo(b))
	return b.Bytes()
}

// raw builds headers that the writer would refuse.
type raw []byte

func (r raw) u32(x uint32) raw { return binary.LittleEndian.AppendUint32(r, x) }
func (r raw) u64(x uint64) raw { return binary.LittleEndian.AppendUint64(r, x) }
func (r raw) str(s string) raw { return append(r.u64(uint64(len(s))), s...) }
func head(tensors, keys uint64) raw {
	return raw(magic).u32(3).u64(tensors).u64(keys)
}
func (r raw) tensor(name string, typ tensor.Type, off uint64, dims ...uint64) raw {
	r = r.str(name).u32(uint32(len(dims)))
	for _, d := range dims {
		r = r.u64(d)
	}
	return r.u32(uint32(typ)).u64(off)
}
func (r raw) zeros(n int) raw { return append(r, make([]byte, n)...) }

// Every kind of damage has its own message.
func TestHostile(t *testing.T) {
	f32 := tensor.F32
	key := func(typ valueType) raw { return head(0, 1).str("k").u32(uint32(typ)) }
	nest := key(typeArray)
	for range maxDepth {
		nest = nest.u32(uint32(typeArray)).u64(1)
	}
	for name, c := range map[string]struct {
		data raw
		want string
	}{
		"empty":                {nil, "not a GGUF file"},
		"other magic":          {raw("GGML").u32(3), "not a GGUF file"},
		"version cut":          {raw(magic).zeros(3), "the version goes beyond the end"},
		"version 1":            {raw(magic).u32(1), "version 1 is not supported"},
		"version 4":            {raw(magic).u32(4), "newer"},
		"big-endian":           {raw(magic).u32(3 << 24), "big-endian"},
		"counts cut":           {raw(magic).u32(3).u64(1), "the counts go"},
		"keys beyond file":     {head(0, 1<<60).zeros(64), "metadata keys do not fit"},
		"tensors beyond file":  {head(1<<60, 0).zeros(64), "tensors do not fit"},
		"key name beyond file": {head(0, 1).u64(1 << 62).zeros(32), "a string of 4611686018427387904 bytes goes beyond"},
		"key name negative":    {head(0, 1).u64(math.MaxUint64).zeros(32), "goes beyond"},
		"no key name":          {head(0, 1).str("").u32(0).zeros(32), "has no name"},
		"key twice":            {head(0, 2).str("k").u32(0).zeros(1).str("k").u32(0).zeros(1), `key "k": occurs twice`},
		"value type":           {key(13).zeros(8), "value type 13"},
		"value cut":            {key(typeUint64).zeros(7), `key "k": goes beyond`},
		"string beyond file":   {key(typeString).u64(1 << 40).zeros(8), "a string of 1099511627776 bytes"},
		"array beyond file":    {key(typeArray).u32(uint32(typeUint8)).u64(1 << 40), "an array of 1099511627776 × u8"},
		"array overflows":      {key(typeArray).u32(uint32(typeUint64)).u64(1 << 61).zeros(8), "goes beyond"},
		"strings beyond file":  {key(typeArray).u32(uint32(typeString)).u64(1 << 61).zeros(8), "goes beyond"},
		"array element type":   {key(typeArray).u32(99).u64(1).zeros(8), "array of value type 99"},
		"element cut":          {key(typeArray).u32(uint32(typeString)).u64(1).u64(9).zeros(8), "element 0 a string of 9 bytes"},
		"nested too deep":      {nest.u32(uint32(typeUint8)).u64(0), "nested more than 8 deep"},
		"alignment 0":          {head(0, 1).str(alignmentKey).u32(uint32(typeUint32)).u32(0), "power of two"},
		"alignment 48":         {head(0, 1).str(alignmentKey).u32(uint32(typeUint32)).u32(48), "power of two"},
		"alignment huge":       {head(0, 1).str(alignmentKey).u32(uint32(typeUint64)).u64(1 << 63), "power of two"},
		"alignment a string":   {head(0, 1).str(alignmentKey).u32(uint32(typeString)).str("32"), "power of two"},
		"no tensor name":       {head(1, 0).tensor("", f32, 0, 1).zeros(64), "has no name"},
		"tensor twice":         {head(2, 0).tensor("x", f32, 0, 1).tensor("x", f32, 32, 1).zeros(96), `tensor "x": occurs twice`},
		"5 dimensions":         {head(1, 0).tensor("x", f32, 0, 1, 1, 1, 1, 1).zeros(64), "5 dimensions"},
		"2^32-1 dimensions":    {head(1, 0).str("x").u32(math.MaxUint32).zeros(64), "4294967295 dimensions"},
		"dimension 0":          {head(1, 0).tensor("x", f32, 0, 4, 0).zeros(64), "below 1"},
		"dimension negative":   {head(1, 0).tensor("x", f32, 0, 1<<63).zeros(64), "dimension 0 is"},
		"elements overflow":    {head(1, 0).tensor("x", f32, 0, 1<<30, 1<<30, 1<<30).zeros(64), "overflows"},
		"bytes overflow":       {head(1, 0).tensor("x", f32, 0, 1<<30, 1<<30, 2).zeros(64), "overflow"},
		"part of a block":      {head(1, 0).tensor("x", tensor.Q8_0, 0, 16, 2).zeros(64), "not whole blocks"},
		"offset overflows":     {head(1, 0).tensor("x", f32, 1<<63, 1).zeros(64), "overflows"},
		"offset misaligned":    {head(1, 0).tensor("x", f32, 8, 1).zeros(96), "not a multiple of the alignment 32"},
		"offset beyond file":   {head(1, 0).tensor("x", f32, 1<<40, 1).zeros(64), "beyond the end of the file"},
		"data beyond file":     {head(1, 0).tensor("x", f32, 0, 1<<28).zeros(64), "beyond the end of the file"},
		"data cut":             {head(1, 0).tensor("x", f32, 0, 32).zeros(128), "beyond the end of the file"},
		"overlap":              {head(2, 0).tensor("x", f32, 32, 8).tensor("y", f32, 0, 9).zeros(160), "overlaps"},
		"overlap inside":       {head(2, 0).tensor("x", f32, 0, 32).tensor("y", f32, 32, 1).zeros(256), "overlaps"},
		"unknown type beyond":  {head(1, 0).tensor("x", 99, 1<<40, 1).zeros(64), "beyond the end of the file"},
		"info cut":             {head(1, 0).str("x").u32(1).u64(1).u32(0).u32(0), "type and offset"},
	} {
		path := filepath.Join(t.TempDir(), "bad.gguf")
		testfile.Write(t, path, c.data)
		_, err := Open(path)
		var fe *fileerr.Error
		if !errors.As(err, &fe) || fe.File != path || fe.Field == "" || fe.Remedy == "" ||
			!strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want %q", name, err, c.want)
		}
	}
}

// A file cut anywhere is an error, and only the padding at its end can go.
func TestCut(t *testing.T) {
	data := small()
	h, err := parse(data)
	if err != nil {
		t.Fatal(err)
	}
	last := h.tensors[len(h.tensors)-1]
	for n := range data {
		if _, err := parse(data[:n:n]); (err == nil) != (int64(n) >= last.offset+last.Size) {
			t.Fatalf("cut to %d of %d bytes: %v", n, len(data), err)
		}
	}
}

// Any byte changed to any of several values gives an error or a file that can be read through.
func TestFlipped(t *testing.T) {
	data := small()
	for i := range data {
		old := data[i]
		for _, x := range []byte{0, 1, 9, 0x7f, 0x80, 0xff, old + 1, old ^ 0x80} {
			data[i] = x
			walk(data)
		}
		data[i] = old
	}
}

// walk parses and looks at everything.
func walk(data []byte) (*header, error) {
	h, err := parse(data)
	if err != nil {
		return nil, err
	}
	for _, kv := range h.meta {
		v := kv.value
		_ = v.String()
		goValue(v)
		As[[]float32](v)
		As[[]int64](v)
		As[[]Value](v)
	}
	for _, t := range h.tensors {
		x := tensor.Tensor{Name: t.Name, Type: t.Type, Shape: t.Shape, Data: data[t.offset : t.offset+t.Size]}
		if storable(t.Type) {
			if err := x.Check(); err != nil {
				panic(err)
			}
		}
		if t.Type.Decodes() {
			must(x.Float32s())
		}
	}
	return h, nil
}

// A tensor of an unknown type is in the list, and an error when it is loaded; so is one that cannot be computed with.
func TestUnknownType(t *testing.T) {
	path := filepath.Join(t.TempDir(), "a.gguf")
	data := head(3, 0).tensor("x", 99, 0, 7).tensor("y", tensor.F32, 0, 1).tensor("z", numtype.NVFP4, 32, 64)
	data = data.zeros(32 - len(data)%32 + 96)
	testfile.Write(t, path, data)
	f, err := Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if len(f.Tensors) != 3 || f.Tensors[0].Type.String() != "type 99" {
		t.Errorf("tensors %v", f.Tensors)
	}
	if _, err := f.Load("y"); err != nil {
		t.Error(err)
	}
	if _, err := f.Load("z"); err == nil || !strings.Contains(err.Error(), "IQ4_NL") || strings.Contains(err.Error(), "F8_") {
		t.Errorf("the remedy names the types that grove reads: %v", err)
	}
	for name, want := range map[string]string{"x": `tensor "x": is of type 99`, "z": `tensor "z": is of NVFP4`,
		"none": `tensor "none": is not in the file`} {
		if _, err := f.Load(name); err == nil || !strings.HasPrefix(err.Error(), "gguf: "+path+": "+want) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if x, ok := f.Tensor("x"); !ok || x.Check() == nil {
		t.Error("a tensor of an unknown type is usable")
	}
	if err := f.Close(); err != nil {
		t.Error(err)
	}
	if _, ok := f.Tensor("y"); ok {
		t.Error("a closed file has tensors")
	}
}

func TestOpenFails(t *testing.T) {
	dir := t.TempDir()
	if _, err := Open(filepath.Join(dir, "none.gguf")); !errors.Is(err, fs.ErrNotExist) {
		t.Error(err)
	}
	if _, err := Open(dir); err == nil || !strings.Contains(err.Error(), "folder") {
		t.Error(err)
	}
}

// readAll reads a file as a program that loads it does.
func readAll(data []byte) error {
	f, err := Parse("fuzz.gguf", data)
	if err != nil {
		return err
	}
	for _, kv := range f.list {
		_ = kv.value.String()
		Get[[]string](f, kv.key)
		As[[]int64](kv.value)
		As[[]float32](kv.value)
		As[[]bool](kv.value)
		_, _ = As[int64](kv.value)
		_, _ = As[float64](kv.value)
	}
	for _, t := range f.Tensors {
		_, _ = f.Load(t.Name)
	}
	return nil
}

// FuzzGGUF: no bytes make the parser panic or take much memory. What it accepts can be read through
// and, written again, is the same. The file's end is repeated, so that small inputs make large files.
func FuzzGGUF(f *testing.F) {
	f.Add(small(), 0, uint16(0))
	f.Add([]byte(head(2, 0).tensor("x", 99, 0, 7).tensor("y", tensor.Q4_K, 0, 256).zeros(200)), 0, uint16(0))
	f.Add([]byte(head(0,
		1).str("k").u32(uint32(typeArray)).u32(uint32(typeArray)).u64(1).u32(uint32(typeString)).u64(1).str("x")), 0,
		uint16(0))
	f.Add([]byte(head(0, 1).str("k").u32(uint32(typeArray)).u32(uint32(typeString)).u64(1<<16).u64(0)), 8, uint16(1<<16-1))
	f.Add([]byte(head(0,
		1).str("k").u32(uint32(typeArray)).u32(uint32(typeArray)).u64(1<<15).u32(uint32(typeUint8)).u64(0)), 12,
		uint16(1<<15-1))
	for i := 4; i < len(small()); i += 37 {
		b := small()
		b[i] ^= 0x41
		f.Add(b, i, uint16(i))
	}
	f.Fuzz(func(t *testing.T, data []byte, tail int, times uint16) {
		if tail > 0 && tail <= min(len(data), 1<<20/(int(times)+1)) {
			data = append(slices.Clone(data), bytes.Repeat(data[len(data)-tail:], int(times))...)
		}
		hostile.Check(t, len(data), func() { _ = readAll(data) })
		h, err := walk(data)
		if err != nil {
			if p := (*fault)(nil); !errors.As(err, &p) || p.field == "" || p.remedy == "" {
				t.Fatalf("an error without field or remedy: %v", err)
			}
			return
		}
		w := new(Writer)
		for _, kv := range h.meta {
			w.Set(kv.key, kv.value)
		}
		b := &bytes.Buffer{}
		if _, err := w.WriteTo(b); err != nil {
			return // the writer is stricter about alignment and key lengths
		}
		again, err := parse(b.Bytes())
		if err != nil {
			t.Fatal(err)
		}
		for i, kv := range again.meta {
			if kv != h.meta[i] {
				t.Fatalf("%v became %v", h.meta[i], kv)
			}
		}
	})
}

// The files that take the most memory for each of their bytes.
func TestMemory(t *testing.T) {
	const n = 4 << 20
	array := func(of valueType, n int) raw {
		return head(0, 1).str("k").u32(uint32(typeArray)).u32(uint32(of)).u64(uint64(n))
	}
	many := func(n uint64, one func(r raw, name string) raw, r raw) raw {
		for i := range n {
			r = one(r, string(binary.LittleEndian.AppendUint32(nil, uint32(i))))
		}
		return r
	}
	key := func(r raw, name string) raw { return append(r.str(name).u32(uint32(typeUint8)), 0) }
	info := func(r raw, name string) raw { return r.tensor(name, tensor.Type(99), 0) }
	for name, data := range map[string]raw{
		"keys":            many(maxCount, key, head(0, maxCount)),
		"too many keys":   many(8*maxCount, key, head(0, 8*maxCount)),
		"tensors":         many(maxCount, info, head(maxCount, 0)).zeros(64),
		"more tensors":    many(8*maxCount, info, head(8*maxCount, 0)).zeros(64),
		"empty strings":   array(typeString, n).zeros(8 * n),
		"bytes":           array(typeUint8, 4*n).zeros(4 * n),
		"arrays":          append(array(typeArray, n), bytes.Repeat(make([]byte, 12), n)...),
		"one long string": head(0, 1).str("k").u32(uint32(typeString)).str(strings.Repeat("x", 4*n)),
	} {
		t.Run(name, func(t *testing.T) {
			hostile.Check(t, len(data), func() { _ = readAll(data) })
		})
	}
}
