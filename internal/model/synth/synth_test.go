package synth

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/grovellm/grove/gguf"
	"github.com/grovellm/grove/internal/files/safetensors"
	"github.com/grovellm/grove/internal/model"
	"github.com/grovellm/grove/internal/testing/cases"
	_ "github.com/grovellm/grove/internal/testing/testfile" // does not wait for the disk
	"github.com/grovellm/grove/tensor"
	"pgregory.net/rapid"
)

// tiny lists the shapes that are small enough to write in a test.
var tiny = sync.OnceValue(func() (list []Shape) {
	for _, s := range Shapes() {
		if s.Parameters() < 5e6 {
			list = append(list, s)
		}
	}
	return list
})

// exactly holds the latest file of exact.
var exactly bytes.Buffer

// exact returns the F32 file of a shape for seed 1. The next call overwrites it.
func exact(t testing.TB, s Shape) *gguf.File {
	t.Helper()
	return made(t, &exactly, s, Options{Seed: 1})
}

// made returns a shape's file, whose content is in the buffer.
func made(t testing.TB, b *bytes.Buffer, s Shape, o Options) *gguf.File {
	t.Helper()
	b.Reset()
	size, err := o.Type.Size(int(s.Parameters()) &^ 255)
	if err != nil {
		t.Fatal(err)
	}
	b.Grow(size + 1<<18) // it need not grow often
	if err := writeWith(context.Background(), s, o, func(w *gguf.Writer) error {
		_, err := w.WriteTo(b)
		return err
	}); err != nil {
		t.Fatal(err)
	}
	f, err := gguf.Parse(s.Name, b.Bytes())
	if err != nil {
		t.Fatal(err)
	}
	return f
}

func get(t testing.TB, f interface {
	Tensor(string) (tensor.Tensor, bool)
}, name string) tensor.Tensor {
	t.Helper()
	x, ok := f.Tensor(name)
	if !ok {
		t.Fatalf("no tensor %s", name)
	}
	x, err := x.ReadAll()
	if err != nil {
		t.Fatal(err)
	}
	return x
}

// writable lists the types that a shape is written in. Some shapes have rows that are not whole blocks of Q8_0.
func writable(s Shape) []tensor.Type {
	types := []tensor.Type{tensor.F32, tensor.F16, tensor.BF16}
	if !slices.Contains([]string{"tiny-gemma3n", "tiny-gemma4", "tiny-gemma4-experts", "tiny-glm4moe", "tiny-deepseek2",
		"tiny-glm4lite", "tiny-mistral4", "tiny-kimi-linear"}, s.Name) {
		types = append(types, tensor.Q8_0)
	}
	return types
}

// The parameter counts are those of the published models; a tied head counts once.
func TestNamedShapes(t *testing.T) {
	published := map[string]int64{
		"qwen3-0.6b": 596_049_920, "qwen2.5-0.5b": 494_032_768, "llama-3.2-1b": 1_235_814_400, "tinyllama-1.1b": 1_100_048_384,
		"smollm2-135m": 134_515_008, "pythia-70m": 70_426_624, "pythia-160m": 162_322_944, "pythia-410m": 405_334_016,
		"qwen3-1.7b": 1_720_574_976, "gemma-3-1b": 999_885_952, "phi-4-mini": 3_836_021_760, "lfm2-1.2b": 1_170_340_608,
	}
	for _, s := range Shapes() {
		for _, typ := range writable(s) {
			if err := s.check(typ); err != nil {
				t.Error(err)
			}
		}
		if want, ok := published[s.Name]; ok && s.Parameters() != want {
			t.Errorf("%s has %d parameters, want %d", s.Name, s.Parameters(), want)
		}
		if got, err := Lookup(s.Name); err != nil || got.Name != s.Name {
			t.Errorf("Lookup(%q) = %q, %v", s.Name, got.Name, err)
		}
	}
	if _, err := Lookup("qwen3-0.5b"); err == nil {
		t.Error("a shape that does not exist is found")
	}
}

// Every architecture that grove runs has random models.
func TestFamilies(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	for _, arch := range model.Architectures() {
		f := familyOf(arch)
		if f == nil {
			t.Errorf("%s has no random models: add it to families", arch)
			continue
		}
		if !slices.ContainsFunc(f.named, func(s Shape) bool { return strings.HasPrefix(s.Name, "tiny-") }) {
			t.Errorf("%s has no tiny shape", arch)
		}
		for n := range 90 { // ten of each type and number of layers
			typ := []tensor.Type{tensor.F32, tensor.Q8_0, tensor.Q4_K}[n%3]
			layers := n / 3 % 3
			s := Random(r, arch, typ, layers)
			if err := s.check(typ); err != nil {
				t.Error(err)
			}
			if layers > 0 && s.Layers > max(layers, f.fewest) {
				t.Errorf("%s: %d layers, want %d at most", arch, s.Layers, layers)
			}
		}
	}
	if len(families) != len(model.Architectures()) {
		t.Errorf("%d families of %d architectures", len(families), len(model.Architectures()))
	}
}

// The numbers must not depend on the machine: golden files have other engines' results for them.
func TestNumbersStayTheSame(t *testing.T) {
	want := map[string]string{
		"tiny-llama2":                 "9286c67032279600",
		"tiny-llama3":                 "d92e885e34ff98cf",
		"tiny-qwen2":                  "5365cb064d5b2fc6",
		"tiny-qwen3":                  "5b0b5c10ec200830",
		"tiny-qwen3-untied":           "bc4aede3c85e6491",
		"tiny-gptneox":                "d3b72e6f91c61fb8",
		"tiny-gptneox-sequential":     "caee7f8739450b24",
		"tiny-stablelm":               "2eacca4a8caad5a2",
		"tiny-mistral":                "ca24a806e78143ed",
		"tiny-mistral3":               "b6da5ff386556e01",
		"tiny-yarn":                   "c6ea9dcf34de557b",
		"tiny-linear":                 "89307df0c4985627",
		"tiny-smollm3":                "f680bf422dc9dd20",
		"tiny-granite":                "06b7ccd75a04e96c",
		"tiny-olmo2":                  "7ac2b797c7baa501",
		"tiny-olmo3":                  "eae61c41f0a75c5e",
		"tiny-longrope":               "5477113b2e2c18ae",
		"tiny-minicpm3":               "06bf2d376f89cde3",
		"tiny-chatglm":                "6adc4354c8fc434d",
		"tiny-cohere2moe":             "2b256f38668b36d2",
		"tiny-cohere2moe-plain":       "8b91d2348c0f1cf9",
		"tiny-gpt2":                   "1b4d2645db2cb7ac",
		"tiny-deci":                   "d4a7e40692b14e28",
		"tiny-phimoe":                 "696fa66b360ecb5b",
		"tiny-gemma":                  "f845e33c5c8bf0cb",
		"tiny-gemma2":                 "13d48e7d44691338",
		"tiny-gemma3":                 "835e7f32030d43b2",
		"tiny-mixtral":                "fe2d63e304818dbf",
		"tiny-qwen3moe":               "d94201846ee47e5b",
		"tiny-granitemoe":             "dea7a3f35a2a079a",
		"tiny-olmoe":                  "2e27ec84c1770eea",
		"tiny-gpt-oss":                "e4065c1a0387a50a",
		"tiny-lfm2":                   "95d09b3741a18918",
		"tiny-qwen35":                 "fdcca12570420fbe",
		"tiny-granite-hybrid":         "9a83cfcbe3a2d812",
		"tiny-granite-hybrid-experts": "38338d57b277aa78",
		"tiny-falcon-h1":              "e2b2b0e1769b527d",
		"tiny-falcon-h1-norm":         "de563520c21746e4",
		"tiny-nemotron-h":             "1d980ea28a1d8019",
		"tiny-nemotron-h-experts":     "dc6b176a75bc3e56",
		"tiny-gemma3n":                "b0871e30f8096079",
		"tiny-gemma4":                 "c7806493247f1230",
		"tiny-gemma4-experts":         "5c5f9788fd66cecc",
		"tiny-glm4":                   "892e165d8586fbb4",
		"tiny-glm4moe":                "adf8aadba5e43e76",
		"tiny-seed-oss":               "9bef89cd51816584",
		"tiny-olmo":                   "bc81842e3f354c5e",
		"tiny-starcoder2":             "3432b43274a33550",
		"tiny-phi2":                   "052ddc7822d9ac26",
		"tiny-nemotron":               "5b20b6c68e2a034e",
		"tiny-command-r":              "741e494565587263",
		"tiny-command-r-plus":         "4d201c4b8d3ede63",
		"tiny-internlm2":              "1a22edeaf4ffa2fb",
		"tiny-exaone":                 "044ca4c6cc183a63",
		"tiny-exaone4":                "51b3d0b6878cec53",
		"tiny-exaone4-full":           "a0259f58376ed54b",
		"tiny-hunyuan":                "5a84f2d55ba94367",
		"tiny-ernie4_5":               "b091f7116dccbbe2",
		"tiny-ernie4_5-moe":           "3528b4cae862bd27",
		"tiny-bailingmoe":             "4eba1f3c96ddc2d6",
		"tiny-bailingmoe2":            "1774d21021f92e75",
		"tiny-afmoe":                  "5a6766313b5c39e8",
		"tiny-minimax-m2":             "d07d297c88c9c985",
		"tiny-llama4":                 "0133f0165c29e059",
		"tiny-hunyuan-moe":            "4dcede452b8de55d",
		"tiny-laguna":                 "f113ec843e6d93f1",
		"tiny-laguna-full":            "b6105b1eac341692",
		"tiny-smallthinker":           "00a9cf5c8de4c3fa",
		"tiny-smallthinker-full":      "23496051059c895e",
		"tiny-dots1":                  "925e6d68c4f99145",
		"tiny-exaone-moe":             "99ba9cd64b0d3c39",
		"tiny-cohere2":                "26157ee57e20164a",
		"tiny-arcee":                  "3244c1295e84a945",
		"tiny-deepseek2":              "378c5212b6c00b14",
		"tiny-youtu":                  "f170e3370f8f4c98",
		"tiny-glm4lite":               "34512bb217036632",
		"tiny-lfm2moe":                "68fbaef6622b9390",
		"tiny-qwen35moe":              "c3489c199ffaf8eb",
		"tiny-qwen3next":              "6c732868eded9768",
		"tiny-minicpm":                "71b73f1c7e5c40d6",
		"tiny-apertus":                "2631b8c6160c6321",
		"tiny-nanbeige":               "f1815639612f95c0",
		"tiny-jais2":                  "9987644c2925b013",
		"tiny-hy3":                    "e0b683dfb9dd8da2",
		"tiny-qwen2moe":               "c2fb41cff0ea90c5",
		"tiny-deepseek":               "8ea6e343efea5218",
		"tiny-bitnet":                 "e4970d7c4fd6b50f",
		"tiny-bitnet-silu":            "8fc9fe537fe3a392",
		"tiny-pangu":                  "8b8dd27736da6bb0",
		"tiny-mistral4":               "60bc503aa9507cd7",
		"tiny-jamba":                  "e251e2db39f3a0a0",
		"tiny-jamba-experts":          "e69a5fe5fc4d4887",
		"tiny-step35":                 "f02ade0037d2e434",
		"tiny-mimo2":                  "1076919d97a1dbd1",
		"tiny-kimi-linear":            "f95d3a8e0cdcaa12",
		"tiny-maincoder":              "3197857b2bee64be",
		"tiny-mellum":                 "f866e56a526b5f94",
	}
	for _, s := range tiny() {
		f := exact(t, s)
		h := sha256.New()
		for _, info := range f.Tensors {
			if info.Name != "rope_freqs.weight" { // the one that needs the machine's pow
				h.Write(get(t, f, info.Name).Data)
			}
		}
		if got := fmt.Sprintf("%x", h.Sum(nil))[:16]; got != want[s.Name] {
			t.Errorf("%s: hash of the tensors is %s, want %s", s.Name, got, want[s.Name])
		}
	}
}

func TestThreadsDoNotMatter(t *testing.T) {
	s, _ := Lookup("tiny-qwen2")
	sum := func(threads int) [32]byte {
		defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(threads))
		var b bytes.Buffer
		made(t, &b, s, Options{Type: tensor.Q8_0, Seed: 3})
		return sha256.Sum256(b.Bytes())
	}
	if sum(1) != sum(7) {
		t.Error("1 and 7 threads write different files")
	}
}

// A seed's F16, BF16 and Q8_0 files are its F32 file rounded, and another seed's numbers are others.
// Every shape has one of the types, in turn.
func TestTypesRoundTheSameNumbers(t *testing.T) {
	var space bytes.Buffer
	for i, s := range tiny() {
		exact := exact(t, s)
		if i == 0 {
			if x, y := get(t, exact, "token_embd.weight"), get(t, made(t, &space, s, Options{Seed: 6}),
				"token_embd.weight"); string(x.Data) == string(y.Data) {
				t.Errorf("%s: seeds 1 and 6 give the same embedding", s.Name)
			}
		}
		types := writable(s)[1:]
		typ := types[i%len(types)]
		f := made(t, &space, s, Options{Type: typ, Seed: 1})
		for _, info := range f.Tensors {
			got := get(t, f, info.Name)
			values, err := get(t, exact, info.Name).Float32s()
			if err != nil {
				t.Fatal(err)
			}
			wantType := typ
			if len(info.Shape) == 1 || strings.HasSuffix(info.Name, ".bias") || model.InF32(info.Name) {
				wantType = tensor.F32
			}
			want, err := tensor.FromFloat32s(info.Name, wantType, info.Shape, values)
			if err != nil {
				t.Fatal(err)
			}
			if got.Type != wantType || string(got.Data) != string(want.Data) {
				t.Fatalf("%s: %s as %v is not the rounding of its F32", s.Name, info.Name, typ)
			}
		}
	}
}

// folderTensor returns a planned tensor of a folder. It joins experts, which have their own
// tensors or share one with others.
func folderTensor(t *testing.T, f *safetensors.File, p planned) tensor.Tensor {
	t.Helper()
	if strings.HasSuffix(p.hf, "attention.wqkv.weight") { // for each key head: queries, keys, values
		return unmixed(get(t, f, p.hf), p, []int{96, 32, 32}, []int{1, 2, 3})
	}
	if strings.HasSuffix(p.hf, "query_key_value.weight") && p.mixed != nil { // queries, then keys, then values
		x := get(t, f, p.hf)
		row, from := len(x.Data)/x.Shape[0], []int{0, 192, 256}[p.half-1]
		return tensor.Tensor{Type: x.Type, Shape: p.shape(), Data: x.Data[from*row : (from+p.rows)*row]}
	}
	if p.mixed != nil { // for each key head: queries, keys, values, gates
		return unmixed(get(t, f, p.hf), p, []int{32, 32, 96, 96}, []int{1, 1, 1, 2})
	}
	turned := p.turned && p.matrix
	if p.experts == 0 && p.half == 0 && !turned {
		return get(t, f, p.hf)
	}
	all := tensor.Tensor{Shape: p.shape()}
	p.experts = max(p.experts, 1)
	for e := range p.experts {
		var x []byte
		if name := strings.Replace(p.hf, "*", fmt.Sprint(e), 1); name != p.hf {
			x = get(t, f, name).Data
		} else {
			x = get(t, f, p.hf).Data
			x = x[e*len(x)/p.experts : (e+1)*len(x)/p.experts]
		}
		if p.split > 0 { // a head's keys, inputs × outputs, then its values
			size, outputs := len(x)/p.split/p.cols, p.split-p.rows/p.experts
			if p.half == 2 {
				all.Data = append(all.Data, x[outputs*p.cols*size:]...)
				continue
			}
			rank := p.rows / p.experts
			size = len(x) / p.split / rank
			for r := range rank {
				for c := range p.cols {
					all.Data = append(all.Data, x[(c*rank+r)*size:][:size]...)
				}
			}
			continue
		}
		if p.param || turned { // inputs × outputs, alternating between gate and up, or first those of gate
			n, first := 1+min(p.half, 1), max(p.half-1, 0)
			outputs, size := p.rows/p.experts*n, len(x)/p.cols/(p.rows/p.experts*n)
			if p.sides {
				first, n = first*(outputs/n), 1
			}
			for r := first; r < min(outputs, first+p.rows/p.experts*n); r += n {
				for c := range p.cols {
					all.Data = append(all.Data, x[(c*outputs+r)*size:][:size]...)
				}
			}
			continue
		}
		switch p.half {
		case 1:
			x = x[:len(x)/2]
		case 2:
			x = x[len(x)/2:]
		}
		all.Data = append(all.Data, x...)
	}
	return all
}

// unmixed returns a part of a tensor that has, for each of two heads, rows of queries, keys, values and gates.
func unmixed(x tensor.Tensor, p planned, rows, places []int) tensor.Tensor {
	part := tensor.Tensor{Type: x.Type, Shape: p.shape()}
	row, at := len(x.Data)/x.Shape[0], 0
	for i, n := range rows {
		for head := range 2 {
			from := (head*x.Shape[0]/2 + at) * row
			if places[i] == p.half {
				part.Data = append(part.Data, x.Data[from:from+n*row]...)
			}
		}
		at += n
	}
	return part
}

// tile reorders the value heads of a folder's tensor as in GGUF files: only in folders are those
// of one key head neighbours.
func tile(s *Shape, p planned, x *tensor.Tensor) {
	if !familyOf(s.Arch).tiled {
		return
	}
	d := s.Config().Delta
	_, name, _ := strings.Cut(p.hf, ".linear_attn.")
	before := map[string]int{"in_proj_qkv": 2 * d.KeyHeads * d.KeyDim, "conv1d": 2 * d.KeyHeads * d.KeyDim}
	width := map[string]int{"in_proj_qkv": d.ValueDim, "conv1d": d.ValueDim, "in_proj_z": d.ValueDim,
		"out_proj":  d.ValueDim,
		"in_proj_a": 1, "in_proj_b": 1, "dt_bias": 1, "A_log": 1}
	name = strings.TrimSuffix(name, ".weight")
	if width[name] == 0 {
		return
	}
	step, cell := len(x.Data), len(x.Data)/p.rows
	if name == "out_proj" {
		step, cell = len(x.Data)/p.rows, len(x.Data)/p.rows/p.cols
	}
	var data []byte
	for len(x.Data) > 0 {
		line := x.Data[:step]
		from := before[name] * cell
		data = append(data, line[:from]...)
		size := width[name] * cell
		for j := range d.ValueHeads / d.KeyHeads {
			for k := range d.KeyHeads {
				data = append(data, line[from+(k*d.ValueHeads/d.KeyHeads+j)*size:][:size]...)
			}
		}
		x.Data = x.Data[step:]
	}
	x.Data = data
}

// Both files hold the same rows. Where the two formats order them differently, the order is the one
// of their converters (reshape to the left form's axes, swap two, flatten).
func TestHuggingFaceHoldsTheSameModel(t *testing.T) {
	for _, s := range tiny() {
		f, dir := exact(t, s), filepath.Join(t.TempDir(), "hf")
		if err := WriteHF(context.Background(), dir, s, Options{Seed: 1}); err != nil {
			t.Fatal(err)
		}
		hf, err := safetensors.Open(dir)
		if err != nil {
			t.Fatal(err)
		}
		defer hf.Close()
		n := 0
		for _, p := range s.plan() {
			if p.hf == "" {
				continue
			}
			switch {
			case strings.Contains(p.hf, "*"):
				n += p.experts
			case p.half < 2:
				n++
			}
			a, b := get(t, f, p.gguf), folderTensor(t, hf, p)
			tile(&s, p, &b)
			row := len(a.Data) / p.rows
			if p.conv && len(b.Shape) == 3 && b.Shape[1] == 1 {
				b.Shape = []int{b.Shape[0], b.Shape[2]}
			}
			if p.row && len(b.Shape) == 2 && b.Shape[0] == 1 {
				b.Shape = b.Shape[1:]
			}
			if p.flat && len(b.Shape) == 1 {
				b.Shape = []int{p.rows, b.Shape[0] / p.rows}
			}
			if len(a.Data) != len(b.Data) || fmt.Sprint(a.Shape) != fmt.Sprint(b.Shape) {
				t.Fatalf("%s: %s is %v, %s is %v", s.Name, p.gguf, a.Shape, p.hf, b.Shape)
			}
			if p.decay {
				x, err1 := a.Float32s()
				y, err2 := b.Float32s()
				for i := range x {
					if back := -math.Exp(float64(y[i])); err1 != nil || err2 != nil || math.Abs(back-float64(x[i])) > 1e-6 {
						t.Fatalf("%s: element %d of %s is %g, of %s %g: want its logarithm, negated (%v, %v)",
							s.Name, i, p.gguf, x[i], p.hf, y[i], err1, err2)
					}
				}
				continue
			}
			if p.shift != 0 { // weights of norms minus 1
				x, err1 := a.Float32s()
				y, err2 := b.Float32s()
				for i := range x {
					if err1 != nil || err2 != nil || x[i] != y[i]+1 {
						t.Fatalf("%s: element %d of %s is %g, of %s %g: want 1 less (%v, %v)",
							s.Name, i, p.gguf, x[i], p.hf, y[i], err1, err2)
					}
				}
				continue
			}
			if p.factors != nil { // GGUF files have them multiplied in
				x, err1 := a.Float32s()
				y, err2 := b.Float32s()
				for i := range x {
					if f := p.factors(i / p.cols); err1 != nil || err2 != nil || x[i] != y[i]*f[0]*f[1] {
						t.Fatalf("%s: element %d of %s is %g, of %s %g: want %g times as much (%v, %v)",
							s.Name, i, p.gguf, x[i], p.hf, y[i], f, err1, err2)
					}
				}
				continue
			}
			perm := make([]int, 0, p.rows) // perm[GGUF row] = Hugging Face row
			switch {
			case familyOf(s.Arch).pairs && (p.mixed != nil && p.half < 3 ||
				filepath.Ext(p.hf[:len(p.hf)-len(".weight")]) == ".q_proj" ||
				filepath.Ext(p.hf[:len(p.hf)-len(".weight")]) == ".k_proj"):
				for head := range p.rows / s.HeadDim { // [head, 2, half] -> [head, half, 2]
					for i := range s.HeadDim / 2 {
						perm = append(perm, head*s.HeadDim+i, head*s.HeadDim+s.HeadDim/2+i)
					}
				}
			case s.Arch == "gptneox" && p.rows == 3*s.Hidden:
				for part := range 3 { // [head, 3, dim] -> [3, head, dim]
					for head := range s.Heads {
						for i := range s.HeadDim {
							perm = append(perm, head*3*s.HeadDim+part*s.HeadDim+i)
						}
					}
				}
			default:
				for r := range p.rows {
					perm = append(perm, r)
				}
			}
			for r, from := range perm {
				if string(a.Data[r*row:(r+1)*row]) != string(b.Data[from*row:(from+1)*row]) {
					t.Fatalf("%s: row %d of %s is not row %d of %s", s.Name, r, p.gguf, from, p.hf)
				}
			}
		}
		c := s.Config()
		numbers, err := c.Activations() // they are no tensors in GGUF files
		if err != nil {
			t.Fatal(err)
		}
		n += len(numbers)
		if n != len(hf.Tensors) {
			t.Errorf("%s: %d tensors in the folder, want %d", s.Name, len(hf.Tensors), n)
		}
	}
}

// The numbers have the planned mean and standard deviation, and neighbours are independent.
func TestDistribution(t *testing.T) {
	s, _ := Lookup("tiny-gptneox")
	for _, p := range s.plan() {
		if p.elements() < 10_000 {
			continue
		}
		x := make([]float32, p.elements())
		p.fill(x, 1, true, 0, p.rows)
		var sum, square, along, down float64
		for i, v := range x {
			sum += float64(v)
			square += float64(v) * float64(v)
			along += float64(v) * float64(x[(i+1)%len(x)])
			down += float64(v) * float64(x[(i+p.cols)%len(x)])
		}
		n := float64(len(x))
		slack := 5 / math.Sqrt(n)
		if mean, std := sum/n, math.Sqrt(square/n); math.Abs(mean)/p.std > slack || math.Abs(std/p.std-1) > slack {
			t.Errorf("%s: mean %g, standard deviation %g, want 0, %g", p.gguf, mean, std, p.std)
		}
		if r := max(math.Abs(along), math.Abs(down)) / square; r > slack {
			t.Errorf("%s: neighbours correlate by %g", p.gguf, r)
		}
	}
}

func TestProgressReachesTheEnd(t *testing.T) {
	s, _ := Lookup("tiny-llama3")
	var last, total int64
	f := made(t, new(bytes.Buffer), s, Options{Type: tensor.BF16, Progress: func(d, n int64) {
		if d <= last || total != 0 && n != total || d > n {
			t.Errorf("progress %d of %d after %d of %d", d, n, last, total)
		}
		last, total = d, n
	}})
	var size int64
	for _, info := range f.Tensors {
		size += info.Size
	}
	if last != size || total != size {
		t.Errorf("progress ends at %d of %d, the tensors have %d bytes", last, total, size)
	}
}

func TestCancelLeavesNothing(t *testing.T) {
	s, _ := Lookup("pythia-160m")
	dir := t.TempDir()
	ctx, cancel := context.WithCancel(context.Background())
	err := Write(ctx, filepath.Join(dir, "m.gguf"), s, Options{Progress: func(d, n int64) { cancel() }})
	if !errors.Is(err, context.Canceled) {
		t.Errorf("error is %v, want context.Canceled", err)
	}
	if left, _ := os.ReadDir(dir); len(left) != 0 {
		t.Errorf("%v is left behind", left)
	}
}

// Every shape is either refused or written completely, in every type.
func TestAnyShape(t *testing.T) {
	dir := t.TempDir()
	cases.Check(t, 30, func(t *rapid.T) {
		s := rapid.SampledFrom(tiny()).Draw(t, "shape")
		small := func(what string, v *int) {
			if rapid.IntRange(0, 3).Draw(t, what+" changes") == 0 {
				*v = rapid.IntRange(-1, 700).Draw(t, what)
			}
		}
		small("vocab", &s.Vocab)
		small("hidden", &s.Hidden)
		small("heads", &s.Heads)
		small("kv heads", &s.KVHeads)
		small("head dim", &s.HeadDim)
		small("ffn", &s.FFN)
		s.RopeDims = s.HeadDim
		s.Layers = rapid.IntRange(-1, 2).Draw(t, "layers")
		s.Heads, s.HeadDim = min(s.Heads, 8), min(s.HeadDim, 80)
		s.Tokens = rapid.SampledFrom([]Tokens{SPM, Llama3, Qwen2, GPT2, "bert"}).Draw(t, "tokens")
		s.Tied = rapid.Bool().Draw(t, "tied")
		typ := rapid.SampledFrom([]tensor.Type{tensor.F32, tensor.F16, tensor.BF16, tensor.Q8_0, tensor.Q4_K}).Draw(t, "type")
		path := filepath.Join(dir, "m.gguf")
		if err := Write(context.Background(), path, s, Options{Type: typ}); err != nil {
			if s.check(typ) == nil {
				t.Fatalf("a valid shape is not written: %v", err)
			}
			return
		}
		f, err := gguf.Open(path)
		if err != nil {
			t.Fatal(err)
		}
		defer f.Close()
		if n := len(s.plan()); n != len(f.Tensors) {
			t.Fatalf("%d tensors, want %d", len(f.Tensors), n)
		}
		if v, _ := gguf.Get[[]string](f, "tokenizer.ggml.tokens"); len(v) != s.Vocab {
			t.Fatalf("%d tokens, want %d", len(v), s.Vocab)
		}
	})
}
