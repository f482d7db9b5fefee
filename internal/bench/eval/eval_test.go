package eval

import (
	"context"
	"encoding/json"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/grovellm/grove/internal/kernels/simd"
	"github.com/grovellm/grove/internal/model"
	"github.com/grovellm/grove/internal/model/synth"
	"github.com/grovellm/grove/internal/testing/testdata"
	"github.com/grovellm/grove/internal/train/data"
	"github.com/grovellm/grove/tensor"
	"github.com/grovellm/grove/tokenizer"
	"pgregory.net/rapid"
)

func open(t testing.TB, shape string) *model.Model {
	t.Helper()
	s, err := synth.Lookup(shape)
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), shape+".gguf")
	if err := synth.Write(context.Background(), path, s, synth.Options{Type: tensor.F32, Seed: 3}); err != nil {
		t.Fatal(err)
	}
	m, err := model.Open(path, model.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { m.Close() })
	return m
}

// nats returns −ln p of each token except the first, given those before it.
func nats(ctx context.Context, m *model.Model, tokens []int32) ([]float64, error) {
	var o Options
	if err := o.Fill(m); err != nil {
		return nil, err
	}
	t := text{ids: tokens, scored: make([]bool, len(tokens))}
	for i := 1; i < len(tokens); i++ {
		t.scored[i] = true
	}
	list := make([]float64, max(0, len(tokens)-1))
	err := newScorer(m, []text{t}, o).run(ctx, func(_, at int, n float64, _ bool) { list[at-1] = n })
	return list, err
}

// The golden file has PyTorch's results for each position of its prompts.
func TestNatsAgainstPyTorch(t *testing.T) {
	dir := testdata.Path(t, "models/go-7m")
	b, err := os.ReadFile(filepath.Join(dir, "golden.json"))
	if err != nil {
		t.Fatal(err)
	}
	var golden struct {
		Prompts []struct {
			IDs []int32   `json:"ids"`
			NLL []float64 `json:"nll_per_position"`
		}
	}
	if err := json.Unmarshal(b, &golden); err != nil {
		t.Fatal(err)
	}
	m, err := model.Open(filepath.Join(dir, "go-7m-f32.gguf"), model.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer m.Close()
	for i, g := range golden.Prompts {
		nats, err := nats(context.Background(), m, g.IDs)
		if err != nil {
			t.Fatal(err)
		}
		if len(nats) != len(g.NLL) || len(nats) == 0 {
			t.Fatalf("prompt %d: %d positions, want %d", i, len(nats), len(g.NLL))
		}
		for j, want := range g.NLL {
			if math.Abs(nats[j]-want) > 1e-4 {
				t.Errorf("prompt %d, position %d: %g nats, want %g", i, j+1, nats[j], want)
			}
		}
	}
}

// Every token after the first is scored once, with the context the protocol promises.
func TestWindows(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(0, 200).Draw(t, "tokens")
		size := rapid.IntRange(2, 50).Draw(t, "context")
		stride := rapid.IntRange(1, size).Draw(t, "stride")
		next := 1
		for i, w := range windows(nil, 0, n, size, stride) {
			if w.rows() > size || w.rows() < 1 || w.from < 0 || w.first < w.from {
				t.Fatalf("window %+v of context %d", w, size)
			}
			for at := w.first; at < w.to; at++ {
				if at+1 != next {
					t.Fatalf("token %d is scored when %d is next", at+1, next)
				}
				if i > 0 && at+1-w.from < min(size-stride, at+1) {
					t.Fatalf("token %d has only %d before it", at+1, at+1-w.from)
				}
				next++
			}
		}
		if next != max(1, n) {
			t.Fatalf("scored up to %d of %d", next, n)
		}
	})
}

// Figures do not depend on how windows share passes, to the bit; they equal those of reading each
// window separately, token by token.
func TestSameAsOneByOne(t *testing.T) {
	m := open(t, "tiny-qwen3-untied")
	ctx := context.Background()
	rapid.Check(t, func(t *rapid.T) {
		o := Options{Context: rapid.IntRange(2, 9).Draw(t, "context")}
		o.Stride = rapid.IntRange((o.Context+1)/2, o.Context).Draw(t, "stride")
		var texts []text
		for range rapid.IntRange(1, 2).Draw(t, "texts") {
			ids := rapid.SliceOfN(rapid.Int32Range(0, int32(m.Config.Vocab-1)), 1, 16).Draw(t, "ids")
			scored := make([]bool, len(ids))
			for i := 1; i < len(ids); i++ {
				scored[i] = rapid.Bool().Draw(t, "scored")
			}
			texts = append(texts, text{ids, scored})
		}
		collect := func(rows int) (out []float64) {
			s := newScorer(m, texts, o)
			s.rows = rows
			if err := s.run(ctx, func(_, _ int, nats float64, _ bool) { out = append(out, nats) }); err != nil {
				t.Fatal(err)
			}
			return out
		}
		a, b := collect(maxRows), collect(rapid.IntRange(1, 12).Draw(t, "rows"))
		var want []float64
		p := m.NewPass()
		for _, x := range texts {
			for _, w := range windows(nil, 0, len(x.ids), o.Context, o.Stride) {
				c := m.NewCache()
				for at := w.from; at < w.to; at++ {
					if err := p.Prefill(ctx, c, x.ids[at:at+1], true); err != nil {
						t.Fatal(err)
					}
					if at >= w.first && x.scored[at+1] {
						l := p.Logits(0, 0)
						want = append(want, float64(simd.LogSumExp(l))-float64(l[x.ids[at+1]]))
					}
				}
				c.Free()
			}
		}
		if len(a) != len(want) || len(b) != len(want) {
			t.Fatalf("%d and %d tokens scored, want %d", len(a), len(b), len(want))
		}
		for i := range want {
			if a[i] != want[i] || b[i] != want[i] {
				t.Fatalf("token %d: %g, %g, want %g", i, a[i], b[i], want[i])
			}
		}
	})
}

func TestRun(t *testing.T) {
	m := open(t, "tiny-qwen2")
	ctx := context.Background()
	doc := func(parts ...data.Part) data.Document { return data.Document{Name: "d", Parts: parts} }
	plain := []data.Document{doc(data.Part{Text: strings.Repeat("some text to read. ", 12)}),
		doc(data.Part{Text: "naïve 東京"})}
	last := int64(0)
	r, err := Run(ctx, m, plain, Options{Context: 64, Progress: func(done, total int64) { last = total - done }})
	if err != nil {
		t.Fatal(err)
	}
	if r.Bytes != int64(plain[0].Bytes()+plain[1].Bytes()) || r.Documents != 2 || last != 0 {
		t.Errorf("%+v, %d tokens left; want all bytes of both documents", r, last)
	}
	if math.Abs(r.Perplexity-math.Exp(r.BitsPerByte*math.Ln2*float64(r.Bytes)/float64(r.Tokens))) > 1e-9*r.Perplexity {
		t.Errorf("perplexity %g does not belong to %g bits per byte", r.Perplexity, r.BitsPerByte)
	}
	cut, err := Run(ctx, m, plain, Options{Context: 64, Limit: 100})
	if err != nil || cut.Tokens != 100 || cut.Bytes >= r.Bytes || cut.Documents != 1 {
		t.Errorf("limit 100: %+v, %v", cut, err)
	}
	turn := data.Part{Text: "<|im_start|>", Control: true}
	chat, err := Run(ctx, m, []data.Document{doc(turn, data.Part{Text: "some text"}, turn)}, Options{})
	if err != nil || chat.Bytes != 9 || chat.Tokens != int64(len(m.Tokenizer.Encode("some text", tokenizer.EncodeOptions{}))) {
		t.Errorf("control tokens count: %+v, %v", chat, err)
	}
}

func TestErrors(t *testing.T) {
	m := open(t, "tiny-qwen2")
	ctx := context.Background()
	docs := []data.Document{{Name: "d", Parts: []data.Part{{Text: "text"}}}}
	for name, c := range map[string]struct {
		docs []data.Document
		o    Options
	}{
		"no document": {nil, Options{}}, "no text": {[]data.Document{{}}, Options{}}, "context": {docs,
			Options{Context: 1 << 20}},
		"stride": {docs, Options{Context: 8, Stride: 9}}, "limit": {docs, Options{Limit: -1}},
		"control": {[]data.Document{{Parts: []data.Part{{Text: "<|no|>", Control: true}}}}, Options{}},
	} {
		if _, err := Run(ctx, m, c.docs, c.o); err == nil {
			t.Errorf("%s is no error", name)
		}
	}
	done, cancel := context.WithCancel(ctx)
	cancel()
	if _, err := Run(done, m, docs, Options{}); err != context.Canceled {
		t.Errorf("cancelled: %v", err)
	}
}
