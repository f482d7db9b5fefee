package torch

import (
	"archive/zip"
	"bytes"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/grovellm/grove/internal/files/numtype"
	"github.com/grovellm/grove/tensor"
	"pgregory.net/rapid"
)

// What Python's pickle writes of a state dictionary, in PyTorch's protocol and in a newer one:
// every kind of number, a parameter, views of one storage, and things that are no tensors.
func TestPythonsFiles(t *testing.T) {
	for _, name := range []string{"protocol2", "protocol4"} {
		data, err := os.ReadFile("testdata/" + name + ".pt")
		if err != nil {
			t.Fatal(err)
		}
		got, err := Parse(bytes.NewReader(data), int64(len(data)))
		if err != nil {
			t.Fatal(err)
		}
		bytes := map[string]string{}
		for i := range got {
			bytes[got[i].Name] = fmt.Sprintf("% x", data[got[i].Offset:][:got[i].Size])
			got[i].Offset = 0
		}
		want := []Info{
			{"layers.0.weight", tensor.F32, []int{2, 4}, 0, 32}, {"layers.0.bias", tensor.F32, []int{4}, 0, 16}, {"one",
				tensor.F16, []int{1, 1}, 0, 2},
			{"d2t", numtype.I64, []int{3}, 0, 24}, {"t2d", numtype.Bool, []int{5}, 0, 5},
		}
		if d := cmp.Diff(want, got); d != "" {
			t.Errorf("%s: %s", name, d)
		}
		for tensor, want := range map[string]string{"layers.0.bias": "00 00 00 41 00 00 10 41 00 00 20 41 00 00 30 41",
			"one": "00 c0", "t2d": "01 00 00 01 01",
			"d2t": "07 00 00 00 00 00 00 00 ff ff ff ff ff ff ff ff 00 00 00 00 00 01 00 00"} {
			if bytes[tensor] != want {
				t.Errorf("%s: %s has bytes %s, want %s", name, tensor, bytes[tensor], want)
			}
		}
	}
}

// view is a tensor to be written: a part of a storage of n numbers.
type view struct {
	name, class, storage string
	first                int
	shape, strides       []int
}

// pickled writes a dictionary of tensors in protocol 2, one opcode for each part.
func pickled(views ...view) []byte {
	var b bytes.Buffer
	number := func(n int) { b.WriteByte('J'); b.Write([]byte{byte(n), byte(n >> 8), byte(n >> 16), byte(n >> 24)}) }
	text := func(s string) { b.WriteString("X" + string([]byte{byte(len(s)), 0, 0, 0}) + s) }
	tuple := func(ns []int) {
		b.WriteByte('(')
		for _, n := range ns {
			number(n)
		}
		b.WriteByte('t')
	}
	b.WriteString("\x80\x02}(")
	for _, v := range views {
		text(v.name)
		b.WriteString("ctorch._utils\n_rebuild_tensor_v2\n((")
		text("storage")
		b.WriteString("ctorch\n" + v.class + "\n")
		text(v.storage)
		text("cpu")
		number(0)
		b.WriteString("tQ")
		number(v.first)
		tuple(v.shape)
		tuple(v.strides)
		b.WriteString("\x89}tR")
	}
	b.WriteString("u.")
	return b.Bytes()
}

// zipped makes a file of entries, in pairs of name and contents.
func zipped(t testing.TB, method uint16, entries ...string) []byte {
	t.Helper()
	var b bytes.Buffer
	z := zip.NewWriter(&b)
	for i := 0; i < len(entries); i += 2 {
		w, err := z.CreateHeader(&zip.FileHeader{Name: entries[i], Method: method})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := w.Write([]byte(entries[i+1])); err != nil {
			t.Fatal(err)
		}
	}
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// Every tensor is found in its place, for all views of all storages.
func TestPlaces(t *testing.T) {
	classes := map[string]int{"FloatStorage": 4, "BFloat16Storage": 2, "LongStorage": 8, "BoolStorage": 1}
	rapid.Check(t, func(r *rapid.T) {
		var views []view
		entries := []string{"x/version", "3\n"}
		want := map[string]string{}
		for s := range rapid.IntRange(1, 4).Draw(r, "storages") {
			class := rapid.SampledFrom([]string{"FloatStorage", "BFloat16Storage", "LongStorage", "BoolStorage"}).Draw(r, "class")
			n := rapid.IntRange(1, 40).Draw(r, "numbers")
			data := rapid.SliceOfN(rapid.Byte(), n*classes[class], n*classes[class]).Draw(r, "data")
			entries = append(entries, fmt.Sprint("x/data/", s), string(data))
			for v := range rapid.IntRange(1, 3).Draw(r, "views") {
				rows, cols := 1, rapid.IntRange(1, n).Draw(r, "cols")
				rows = rapid.IntRange(1, n/cols).Draw(r, "rows")
				first := rapid.IntRange(0, n-rows*cols).Draw(r, "first")
				name := fmt.Sprint("t", s, v)
				views = append(views, view{name, class, fmt.Sprint(s), first, []int{rows, cols}, []int{cols, 1}})
				want[name] = string(data[first*classes[class]:][:rows*cols*classes[class]])
			}
		}
		file := zipped(t, zip.Store, append(entries, "x/data.pkl", string(pickled(views...)))...)
		list, err := Parse(bytes.NewReader(file), int64(len(file)))
		if err != nil {
			r.Fatal(err)
		}
		if len(list) != len(views) {
			r.Fatalf("%d tensors, want %d", len(list), len(views))
		}
		for _, x := range list {
			if got := string(file[x.Offset:][:x.Size]); got != want[x.Name] {
				r.Fatalf("%s has bytes %q, want %q", x.Name, got, want[x.Name])
			}
		}
	})
}

func TestRefused(t *testing.T) {
	good := view{"a", "FloatStorage", "0", 0, []int{2, 2}, []int{2, 1}}
	change := func(f func(v *view)) []byte {
		v := good
		v.shape, v.strides = slices.Clone(v.shape), slices.Clone(v.strides)
		f(&v)
		return zipped(t, zip.Store, "x/data.pkl", string(pickled(v)), "x/data/0", strings.Repeat("1234", 4))
	}
	pickle := func(text string) []byte { return zipped(t, zip.Store, "x/data.pkl", text) }
	for want, data := range map[string][]byte{
		"":                       change(func(*view) {}),
		"save it contiguous":     change(func(v *view) { v.strides = []int{1, 2} }),
		"takes 32 bytes":         change(func(v *view) { v.shape, v.strides = []int{4, 2}, []int{2, 1} }),
		"from number 3 on":       change(func(v *view) { v.first = 3 }),
		"data/9\" is not in":     change(func(v *view) { v.storage = "9" }),
		"QUInt8Storage":          change(func(v *view) { v.class = "QUInt8Storage" }),
		"strides are not":        change(func(v *view) { v.strides = []int{1} }),
		"is compressed":          zipped(t, zip.Deflate, "x/data.pkl", string(pickled(good)), "x/data/0", strings.Repeat("1234", 4)),
		"occurs twice":           zipped(t, zip.Store, "x/data.pkl", string(pickled(good, good)), "x/data/0", strings.Repeat("1234", 4)),
		"no data.pkl":            zipped(t, zip.Store, "x/other", ""),
		"want little":            zipped(t, zip.Store, "x/data.pkl", string(pickled(good)), "x/byteorder", "big"),
		"not a PyTorch file":     []byte("GGUF"),
		"ends too soon":          pickle("\x80\x02}"),
		"the stack is empty":     pickle("."),
		"no tensors by name":     pickle("}."),
		"holds a list":           pickle("]."),
		"there is no mark":       pickle("}u."),
		"nothing is remembered":  pickle("h\x07."),
		"is no storage":          pickle(")Q."),
		"not one that PyTorch":   pickle("ios\nsystem\n."),
		"made by \"os.system\"":  pickle("}X\x01\x00\x00\x00acos\nsystem\nX\x02\x00\x00\x00ls\x85Rs."),
		"items for a dictionary": pickle("}Na."),
	} {
		_, err := Parse(bytes.NewReader(data), int64(len(data)))
		if want == "" && err != nil || want != "" && (err == nil || !strings.Contains(err.Error(), want)) {
			t.Errorf("%q: %v", want, err)
		}
	}
}
