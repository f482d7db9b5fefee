package convert

import (
	"context"
	"encoding/json"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/grovellm/grove/gguf"
	"github.com/grovellm/grove/internal/files/atomicfile"
	"github.com/grovellm/grove/internal/model"
	"github.com/grovellm/grove/internal/model/synth"
	"github.com/grovellm/grove/internal/testing/testdata"
	"github.com/grovellm/grove/tensor"
	"github.com/grovellm/grove/tokenizer"
	"pgregory.net/rapid"
)

// tiny lists the small random shapes: every architecture has one.
var tiny = func() (names []string) {
	for _, s := range synth.Shapes() {
		if strings.HasPrefix(s.Name, "tiny-") {
			names = append(names, s.Name)
		}
	}
	return names
}()

func shape(t testing.TB, name string) synth.Shape {
	t.Helper()
	s, err := synth.Lookup(name)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// logits returns those of a fixed text's last tokens.
func logits(t testing.TB, path string) []float32 {
	t.Helper()
	m, err := model.Open(path, model.Options{Threads: 1})
	if err != nil {
		t.Fatal(err)
	}
	defer m.Close()
	ids := make([]int32, 40)
	for i := range ids {
		ids[i] = int32((i*i*31 + 7) % m.Config.Vocab)
	}
	p, c := m.NewPass(), m.NewCache()
	defer c.Free()
	if err := p.Prefill(context.Background(), c, ids, true); err != nil {
		t.Fatal(err)
	}
	return append([]float32(nil), p.Logits(0, 0)...)
}

func sameBits(t testing.TB, what string, got, want []float32) {
	t.Helper()
	if len(got) != len(want) {
		t.Fatalf("%s: %d logits, want %d", what, len(got), len(want))
	}
	for i := range want {
		if math.Float32bits(got[i]) != math.Float32bits(want[i]) {
			t.Fatalf("%s: logit %d is %g, want %g", what, i, got[i], want[i])
		}
	}
}

// A converted model is the same function, to the bit, in both directions and back again; and its tokenizer is the same.
func TestSameLogits(t *testing.T) {
	ctx := context.Background()
	for _, name := range tiny {
		t.Run(name, func(t *testing.T) {
			s, dir := shape(t, name), t.TempDir()
			at := func(name string) string { return filepath.Join(dir, name) }
			o := synth.Options{Type: tensor.F32, Seed: 5}
			if err := synth.WriteHF(ctx, at("hf"), s, o); err != nil {
				t.Fatal(err)
			}
			if err := synth.Write(ctx, at("a.gguf"), s, o); err != nil {
				t.Fatal(err)
			}
			want, folder := logits(t, at("a.gguf")), logits(t, at("hf"))
			if !inPairs(s) { // otherwise heads' dimensions are summed in another order
				sameBits(t, "the two originals", folder, want)
			}
			if _, err := ToGGUF(ctx, at("hf"), at("b.gguf"), Options{}); err != nil {
				t.Fatal(err)
			}
			sameBits(t, "HF to GGUF", logits(t, at("b.gguf")), want)
			if _, err := ToHF(ctx, at("a.gguf"), at("hf-a"), Options{Type: Keep}); err != nil {
				t.Fatal(err)
			}
			sameBits(t, "GGUF to HF", logits(t, at("hf-a")), folder)
			if _, err := ToGGUF(ctx, at("hf-a"), at("c.gguf"), Options{Type: Keep}); err != nil {
				t.Fatal(err)
			}
			sameMeta(t, at("a.gguf"), at("c.gguf"))
			sameTensors(t, at("b.gguf"), at("c.gguf"))
		})
	}
}

// What files of embedding models say about pooling survives conversion in both directions.
func TestPooling(t *testing.T) {
	ctx := context.Background()
	s, dir := shape(t, "tiny-qwen3"), t.TempDir()
	s.Tune = func(c *model.Config) { c.PoolLast = true }
	from, to := filepath.Join(dir, "a.gguf"), filepath.Join(dir, "b.gguf")
	folder := filepath.Join(dir, "hf")
	if err := synth.Write(ctx, from, s, synth.Options{Type: tensor.F32, Seed: 5}); err != nil {
		t.Fatal(err)
	}
	if _, err := ToHF(ctx, from, folder, Options{Type: Keep}); err != nil {
		t.Fatal(err)
	}
	if _, err := ToGGUF(ctx, folder, to, Options{Type: Keep}); err != nil {
		t.Fatal(err)
	}
	sameMeta(t, from, to)
	// The token that ends a text need not be that which ends a generation, as in Qwen3-Embedding.
	settings := `{"eos_token": "<|im_end|>"}`
	if err := os.WriteFile(filepath.Join(folder, "tokenizer_config.json"), []byte(settings), 0o666); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(folder, "tokenizer.json")
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	var tokens map[string]any
	if err := json.Unmarshal(data, &tokens); err != nil {
		t.Fatal(err)
	}
	end := "<|endoftext|>"
	tokens["post_processor"] = fields{
		"type":           "TemplateProcessing",
		"single":         []any{fields{"Sequence": fields{"id": "A"}}, fields{"SpecialToken": fields{"id": end}}},
		"special_tokens": fields{end: fields{"id": end, "ids": []int{997}, "tokens": []string{end}}},
	}
	if err := atomicfile.WriteJSON(path, tokens); err != nil {
		t.Fatal(err)
	}
	if _, err := ToGGUF(ctx, folder, to, Options{Type: Keep}); err != nil {
		t.Fatal(err)
	}
	f, err := gguf.Open(to)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	for key, want := range map[string]uint64{"qwen3.pooling_type": 3, "tokenizer.ggml.eos_token_id": 997,
		"tokenizer.ggml.eot_token_id": 999} {
		if v, _ := gguf.Get[uint64](f, key); v != want {
			t.Errorf("%s is %d, want %d", key, v, want)
		}
	}
}

// inPairs reports whether heads' dimensions have another order in GGUF files.
func inPairs(s synth.Shape) bool {
	c := s.Config()
	return slices.ContainsFunc(c.Parts(), func(p model.Part) bool {
		return strings.HasSuffix(p.Name, ".attn_q") && p.ToGGUF != nil
	})
}

// sameMeta compares the keys that determine the model and its tokens. Scores need only have the same order, and
// the end of turn may be left out if it is the end of text. The context of a folder with YaRN may be longer.
func sameMeta(t *testing.T, a, b string) {
	t.Helper()
	x, err := gguf.Open(a)
	if err != nil {
		t.Fatal(err)
	}
	defer x.Close()
	y, err := gguf.Open(b)
	if err != nil {
		t.Fatal(err)
	}
	defer y.Close()
	for key, want := range x.Meta() {
		if strings.HasPrefix(key, "general.") || key == "tokenizer.ggml.scores" ||
			key == "tokenizer.ggml.eot_token_id" {
			continue
		}
		if arch, ok := strings.CutSuffix(key, ".context_length"); ok {
			if kind, _ := gguf.Get[string](x, arch+".rope.scaling.type"); kind == "yarn" {
				continue
			}
		}
		v, ok := y.Lookup(key)
		if !ok || v.String() != want.String() {
			t.Errorf("key %s is %v after both ways, %v before", key, v, want)
		}
	}
}

func sameTensors(t *testing.T, a, b string, more ...string) {
	t.Helper()
	x, err := gguf.Open(a)
	if err != nil {
		t.Fatal(err)
	}
	defer x.Close()
	y, err := gguf.Open(b)
	if err != nil {
		t.Fatal(err)
	}
	defer y.Close()
	if len(x.Tensors)+len(more) != len(y.Tensors) {
		t.Fatalf("%d tensors, want %d, and %q", len(y.Tensors), len(x.Tensors), more)
	}
	for _, info := range x.Tensors {
		p, _ := x.Tensor(info.Name)
		q, ok := y.Tensor(info.Name)
		p, err1 := p.ReadAll()
		q, err2 := q.ReadAll()
		if !ok || err1 != nil || err2 != nil || p.Type != q.Type || string(p.Data) != string(q.Data) {
			t.Errorf("tensor %s differs", info.Name)
		}
	}
}

// The order of rows in one format undoes the other's, for any model.
func TestRowsInverse(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		c := model.Config{Arch: rapid.SampledFrom(model.Architectures()).Draw(t, "architecture"), Layers: 1,
			Heads: rapid.IntRange(1, 9).Draw(t, "heads"), HeadDim: 2 * rapid.IntRange(1, 33).Draw(t, "half")}
		c.KVHeads = c.Heads
		for _, p := range c.Parts() {
			if p.ToGGUF == nil {
				continue
			}
			for i := range p.Rows {
				if j := p.ToGGUF(i); j < 0 || j >= p.Rows || p.ToFolder(j) != i {
					t.Fatalf("%s: row %d goes to %d and back to %d", p.Name, i, j, p.ToFolder(j))
				}
			}
		}
	})
}

// The model that PyTorch wrote gives the file that its own converter gave.
func TestGo7M(t *testing.T) {
	dir := testdata.Path(t, "models/go-7m")
	ctx := context.Background()
	got := filepath.Join(t.TempDir(), "got.gguf")
	if _, err := ToGGUF(ctx, dir, got, Options{}); err != nil {
		t.Fatal(err)
	}
	sameBits(t, "go-7m", logits(t, got), logits(t, filepath.Join(dir, "go-7m-f32.gguf")))
	q8 := filepath.Join(t.TempDir(), "q8.gguf")
	if _, err := Quantize(ctx, filepath.Join(dir, "go-7m-f32.gguf"), q8, Options{Type: tensor.Q8_0}); err != nil {
		t.Fatal(err)
	}
	sameTensors(t, filepath.Join(dir, "go-7m-q8_0.gguf"), q8)
}

// A tokenizer that would encode differently after conversion is refused: here its merges do not follow from its scores.
func TestSameTokens(t *testing.T) {
	dir := t.TempDir()
	if err := synth.WriteHF(context.Background(), filepath.Join(dir, "a"), shape(t, "tiny-qwen2"),
		synth.Options{Seed: 1}); err != nil {
		t.Fatal(err)
	}
	if err := synth.WriteHF(context.Background(), filepath.Join(dir, "b"), shape(t, "tiny-gptneox"),
		synth.Options{Seed: 1}); err != nil {
		t.Fatal(err)
	}
	a, err := tokenizer.FromJSON(filepath.Join(dir, "a"))
	if err != nil {
		t.Fatal(err)
	}
	b, err := tokenizer.FromJSON(filepath.Join(dir, "b"))
	if err != nil {
		t.Fatal(err)
	}
	if sameTokens(a, a, "gpt2") != nil || sameTokens(a, b, "gpt2") == nil {
		t.Error("the check does not tell tokenizers apart")
	}
}
