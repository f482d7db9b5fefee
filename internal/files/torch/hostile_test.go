package torch

import (
	"archive/zip"
	"bytes"
	"encoding/binary"
	"os"
	"strings"
	"testing"

	"github.com/grovellm/grove/internal/testing/hostile"
)

// A program is a short text that stands for a pickle: fuzzing it reaches every opcode, with operands
// that fit. Each line of this table is an instruction: a byte, and what it writes. n is the byte that
// follows it in the program.
var instructions = []func(p *picklings, n byte){
	func(p *picklings, n byte) { p.write("(") },
	func(p *picklings, n byte) { p.write("N") },
	func(p *picklings, n byte) { p.write("\x88") },
	func(p *picklings, n byte) { p.write(")") },
	func(p *picklings, n byte) { p.write("]") },
	func(p *picklings, n byte) { p.write("}") },
	func(p *picklings, n byte) { p.write("K" + string([]byte{n})) },
	func(p *picklings, n byte) { p.write("J\x01" + string([]byte{n, n, n})) },
	func(p *picklings, n byte) { p.write("M" + string([]byte{n, 1})) },
	func(p *picklings, n byte) { p.write("\x8a\x02" + string([]byte{n, 1})) },
	func(p *picklings, n byte) { p.write("G" + strings.Repeat(string([]byte{n}), 8)) },
	func(p *picklings, n byte) { p.text('X', 4, strings.Repeat("x", 1<<(n%18))) },
	func(p *picklings, n byte) { p.text(0x8c, 1, strings.Repeat("y", int(n))) },
	func(p *picklings, n byte) { p.text(0x8d, 8, strings.Repeat("z", 1<<(n%18))) },
	func(p *picklings, n byte) { p.text('B', 4, strings.Repeat("b", 1<<(n%18))) },
	func(p *picklings, n byte) { p.text('C', 1, strings.Repeat("c", int(n))) },
	func(p *picklings, n byte) { p.text('U', 1, strings.Repeat("u", int(n))) },
	func(p *picklings, n byte) { p.text('X', 4, names[int(n)%len(names)]) },
	func(p *picklings, n byte) {
		p.write("c" + names[int(n)%len(names)] + "\n" + names[int(n/16)%len(names)] + "\n")
	},
	func(p *picklings, n byte) { p.write("\x93") },
	func(p *picklings, n byte) { p.write("q" + string([]byte{n})) },
	func(p *picklings, n byte) { p.write("r" + string([]byte{n, 0, 0, 0})) },
	func(p *picklings, n byte) { p.write("\x94") },
	func(p *picklings, n byte) { p.write("h" + string([]byte{n})) },
	func(p *picklings, n byte) { p.write("j" + string([]byte{n, 0, 0, 0})) },
	func(p *picklings, n byte) { p.write("0") },
	func(p *picklings, n byte) { p.write("t") },
	func(p *picklings, n byte) { p.write(string([]byte{0x85 + n%3})) },
	func(p *picklings, n byte) { p.write("a") },
	func(p *picklings, n byte) { p.write("e") },
	func(p *picklings, n byte) { p.write("s") },
	func(p *picklings, n byte) { p.write("u") },
	func(p *picklings, n byte) { p.write("Q") },
	func(p *picklings, n byte) { p.write("R") },
	func(p *picklings, n byte) { p.write("\x81") },
	func(p *picklings, n byte) { p.write("b") },
	func(p *picklings, n byte) { p.write("\x95" + strings.Repeat(string([]byte{n}), 8)) },
	func(p *picklings, n byte) { p.write(string([]byte{n})) }, // any byte
	func(p *picklings, n byte) { // a whole tensor, and its name
		view := pickled(view{names[int(n)%len(names)], "FloatStorage", "0", int(n % 4), []int{2, int(n / 4 % 4)},
			[]int{int(n / 4 % 4), 1}})
		p.write(string(view[4 : len(view)-2]))
	},
	func(p *picklings, n byte) { // the last 1 to 16 instructions, up to 2^15 times more
		from := p.starts[max(0, len(p.starts)-2-int(n&15))]
		again := p.out[from:]
		p.write(strings.Repeat(string(again), min(1<<(n>>4), maxPickling/max(1, len(again)))))
	},
}

var names = []string{
	"storage", "0", "1", "cpu", "w", "torch", "FloatStorage", "BoolStorage", "torch._utils", "_rebuild_tensor_v2",
	"_rebuild_parameter",
	"collections", "OrderedDict", "builtins", "list", "",
}

const maxPickling = 1 << 18

type picklings struct {
	out    []byte
	starts []int // of the instructions
}

func (p *picklings) write(s string) {
	if len(p.out)+len(s) <= maxPickling {
		p.out = append(p.out, s...)
	}
}

// text writes an opcode, a length of n bytes, and the text.
func (p *picklings) text(op byte, n int, s string) {
	p.write(string([]byte{op}) + string(binary.LittleEndian.AppendUint64(nil, uint64(len(s)))[:n]) + s)
}

// assemble makes the pickle that a program stands for: its instructions within a dictionary.
func assemble(program []byte) []byte {
	p := &picklings{}
	p.write("\x80\x04}(")
	for i := 0; i+1 < len(program); i += 2 {
		p.starts = append(p.starts, len(p.out))
		instructions[int(program[i])%len(instructions)](p, program[i+1])
	}
	return append(p.out, "u."...)
}

// checkFile reads a file within its limits of memory. What it accepts lies within the file.
func checkFile(t testing.TB, file []byte) (list []Info, err error) {
	t.Helper()
	hostile.Check(t, len(file), func() { list, err = Parse(bytes.NewReader(file), int64(len(file))) })
	for _, x := range list {
		if x.Offset < 0 || x.Size < 0 || x.Offset+x.Size > int64(len(file)) || len(x.Shape) > maxDims {
			t.Fatalf("%+v in a file of %d bytes", x, len(file))
		}
	}
	return list, err
}

// FuzzPickle: no sequence of opcodes takes much more memory than its file, nor many steps for each byte.
func FuzzPickle(f *testing.F) {
	f.Add([]byte("\x26\x00\x26\x05"))                                 // two tensors
	f.Add([]byte("\x0b\x11\x16\x00\x17\x00\x17\x00\x13\x00\x27\x62")) // long names joined again and again
	f.Add([]byte("\x03\x00\x27\xf0\x27\xf0"))                         // many tuples
	f.Add([]byte("\x05\x00\x16\x00\x27\xf1\x27\xf1\x04\x00\x27\xf0\x1d\x00"))
	for i := range instructions {
		f.Add([]byte{0x0b, 4, 0x16, 0, 0x00, 0, 0x17, 0, byte(i), 1, 0x27, 0x52})
	}
	f.Fuzz(func(t *testing.T, program []byte) {
		pickle := assemble(program)
		checkFile(t, zipped(t, zip.Store, "x/data.pkl", string(pickle), "x/data/0", strings.Repeat("1234", 12)))
		u := newUnpickler(pickle)
		_, _ = u.run()
		if u.values > 2*len(pickle) || u.values > maxValues+2 {
			t.Fatalf("%d values of a pickle of %d bytes", u.values, len(pickle))
		}
	})
}

// FuzzFile: the same of the archive around the pickle.
func FuzzFile(f *testing.F) {
	for _, name := range []string{"protocol2", "protocol4"} {
		data, err := os.ReadFile("testdata/" + name + ".pt")
		if err != nil {
			f.Fatal(err)
		}
		f.Add(data)
	}
	good := string(pickled(view{"a", "FloatStorage", "0", 0, []int{2, 2}, []int{2, 1}}))
	f.Add(zipped(f, zip.Store, "x/data.pkl", good, "x/data/0", strings.Repeat("1234", 4)))
	f.Add(zipped(f, zip.Deflate, "x/data.pkl", good+strings.Repeat(" ", 1<<20), "x/data/0", strings.Repeat("1234", 4)))
	f.Add(zipped(f, zip.Store, "x/data.pkl", good, "x/data/0", strings.Repeat("1234", 4), "x/data/0", "",
		"x/byteorder", "little"))
	f.Fuzz(func(t *testing.T, data []byte) { checkFile(t, data) })
}

// The files that take the most memory for each of their bytes, as large as the limits let them grow.
func TestMemory(t *testing.T) {
	text := func(s string) string {
		return "X" + string(binary.LittleEndian.AppendUint32(nil, uint32(len(s)))) + s
	}
	long := strings.Repeat("x", 1<<17)
	tensors := func(n int, shape string) string {
		var b strings.Builder
		b.WriteString("}" + text("storage") + "\x94ctorch\nFloatStorage\n\x94" + text("0") + "\x94" +
			text("cpu") + "\x94" + shape +
			"\x94ctorch._utils\n_rebuild_tensor_v2\n\x94000000(h\x00h\x01h\x02h\x03K\x00tQ\x940(")
		for i := range n {
			b.WriteString("\x8c\x04" + string([]byte{byte('a' + i%26), byte('a' + i/26%26), byte('a' + i/676%26),
				byte('a' + i/17576%26)}) +
				"h\x05(h\x06K\x00h\x04h\x04tR")
		}
		return b.String() + "u."
	}
	for name, pickle := range map[string]string{
		"joined names":             text(long) + "\x94" + text(long) + "\x94" + strings.Repeat("h\x00h\x01\x93", 4000) + ".",
		"joined names in a list":   "](" + text(long) + "\x94" + strings.Repeat("h\x00h\x00\x93", 20_000) + "e.",
		"marks":                    strings.Repeat("(", 1<<20) + ".",
		"empty tuples":             strings.Repeat(")", 1<<20) + ".",
		"dictionaries":             strings.Repeat("}", 1<<20) + ".",
		"remembered":               "N" + strings.Repeat("\x94", 1<<20) + ".",
		"remembered in turn":       strings.Repeat("}\x94", 1<<19) + ".",
		"pushed again":             "N\x94" + strings.Repeat("h\x00", 1<<18) + ".",
		"lists in lists":           strings.Repeat("](", 1<<18) + strings.Repeat("e", 1<<18) + ".",
		"calls":                    "cx\ny\n\x94" + strings.Repeat("h\x00)R", 1<<18) + ".",
		"tensors":                  tensors(50_000, "K\x00\x85"),
		"tensors of long shape":    tensors(20_000, "("+strings.Repeat("K\x00", 1<<18)+"t"),
		"tensors of 64 dimensions": tensors(50_000, "("+strings.Repeat("K\x00", 64)+"t"),
	} {
		t.Run(name, func(t *testing.T) {
			checkFile(t, zipped(t, zip.Store, "x/data.pkl", pickle, "x/data/0", "1234"))
		})
	}
	t.Run("directory", func(t *testing.T) {
		var b bytes.Buffer
		z := zip.NewWriter(&b)
		for range 1 << 18 {
			if _, err := z.CreateHeader(&zip.FileHeader{Name: "x"}); err != nil {
				t.Fatal(err)
			}
		}
		if err := z.Close(); err != nil {
			t.Fatal(err)
		}
		if _, err := checkFile(t, b.Bytes()); err == nil || !strings.Contains(err.Error(), "directory is larger") {
			t.Error(err)
		}
	})
}
