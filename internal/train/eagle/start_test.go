package eagle

import (
	"context"
	"errors"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/grovellm/grove/gguf"
	"github.com/grovellm/grove/internal/convert"
	"github.com/grovellm/grove/internal/files/ggufkeys"
	"github.com/grovellm/grove/internal/heads/headfile"
	"github.com/grovellm/grove/internal/train/traintest"
	"github.com/grovellm/grove/tensor"
)

// A head that starts from another one makes the same guesses, with an MLP of the same width or a
// wider one. Heads that cannot start are refused with the reason.
func TestStart(t *testing.T) {
	j := traintest.JobWithTarget(t)
	r := tinyEagle(3, 20)
	r.From, r.DraftVocab = nil, 96
	if err := j.TrainHead(context.Background(), "eagle", &r); err != nil {
		t.Fatal(err)
	}
	older := tinyEagle(2, 1)
	if err := j.TrainHead(context.Background(), "eagle2", &older); err != nil {
		t.Fatal(err)
	}
	text, err := j.OpenCorpus(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	defer text.Close()
	begin := func(file string, ffn int) (*learner, map[string]float64) {
		r := tinyEagle(3, 1)
		r.Heads = 8
		r.DraftVocab = 0
		r.FFN = ffn
		r.Start = filepath.Join(j.Dir, "eagle", file)
		f := Flags{Start: &r.Start}
		if ffn > 0 {
			f.FFN = &ffn
		}
		if err := j.CheckHead(&f); err != nil {
			t.Errorf("a head that starts as another is refused before there is text: %v", err)
		}
		if err := r.Prepare(&j); err != nil {
			t.Fatal(err)
		}
		l := traintest.Learner[*learner](t, &j, &r, text)
		_, figures, err := l.Validate()
		if err != nil {
			t.Fatal(err)
		}
		return l, figures
	}
	same, want := begin("model-f32.gguf", 0)
	tensors, err := headfile.Tensors(same.head.Params.All())
	if err == nil {
		err = headfile.WriteGGUF(filepath.Join(j.Dir, "again.gguf"), "again", same.head.Config(), tensors, same.r.tokens, nil,
			tensor.F32)
	}
	if err != nil {
		t.Fatal(err)
	}
	for name, v := range weights(t, filepath.Join(j.Dir, "again.gguf")) {
		if !slices.Equal(v, weights(t, filepath.Join(j.Dir, "eagle", "model-f32.gguf"))[name]) {
			t.Errorf("a head that starts as another has another %s", name)
		}
	}
	if c := same.head.Config(); c.FFN != 64 || c.Heads != 4 || c.DraftVocab != 96 {
		t.Errorf("an MLP of width %d, %d heads, a draft vocabulary of %d: want those of the head that it starts as", c.FFN, c.Heads, c.DraftVocab)
	}
	scaled := filepath.Join(j.Dir, "eagle", "scaled.gguf") // as heads are exported for long texts
	f, err := gguf.Open(filepath.Join(j.Dir, "eagle", "model-f32.gguf"))
	if err != nil {
		t.Fatal(err)
	}
	w := new(gguf.Writer)
	ggufkeys.SetAll(w, f)
	w.Set("eagle3.rope.scaling.type", "yarn")
	w.Set("eagle3.rope.scaling.factor", float32(32))
	w.Set("eagle3.rope.scaling.original_context_length", uint32(16))
	for _, info := range f.Tensors {
		x, _ := f.Tensor(info.Name)
		w.AddTensor(x)
	}
	if err := errors.Join(w.WriteFile(scaled), f.Close()); err != nil {
		t.Fatal(err)
	}
	long, other := begin("scaled.gguf", 0)
	if r := long.head.Config().Rope; r.Scale != 32 || r.Yarn == nil || r.Original != 16 || maps.Equal(other, want) {
		t.Errorf("a head that starts as one with YaRN rotates by %+v, and guesses as one without: %v", r, other)
	}
	wide, got := begin("model-f32.gguf", 128)
	if c := wide.head.Config(); c.FFN != 128 || !maps.Equal(got, want) {
		t.Errorf("with an MLP of width %d %v, with that of the head that it starts as %v", c.FFN, got, want)
	}
	if want["held depth 01"] < 0.1 {
		t.Errorf("a trained head's first guess is right %.2f of the time", want["held depth 01"])
	}

	for _, typ := range []tensor.Type{tensor.Q8_0, tensor.Q4_0, tensor.IQ4_NL} { // types that heads are stored in
		from, to := filepath.Join(j.Dir, "eagle", "model-f32.gguf"), filepath.Join(j.Dir, "eagle", "kept.gguf")
		if _, err := convert.Quantize(context.Background(), from, to, convert.Options{Type: typ}); err != nil {
			t.Fatal(err)
		}
		if _, got := begin("kept.gguf", 0); got["held depth 01"] < want["held depth 01"]-0.15 {
			t.Errorf("in %v a head's first guess is right %.2f of the time, before %.2f", typ,
				got["held depth 01"], want["held depth 01"])
		}
		m := same.head.Target.Head.W
		rows := make([]float32, len(same.r.tokens)*m.In())
		for i, token := range same.r.tokens {
			m.Row(rows[i*m.In():(i+1)*m.In()], int(token))
		}
		for i := range rows {
			rows[i] *= 1.2
		}
		if sameRows(typ, rows, same.r.tokens, m) {
			t.Errorf("rows a fifth longer are taken for those of the target in %v", typ)
		}
	}

	for _, c := range []struct {
		version int
		start   string
		ffn     int
		why     string
	}{
		{3, "eagle/model-f32.gguf", 32, "an MLP of width 32"},
		{3, "eagle2/model-f32.gguf", 0, "EAGLE-2"},
		{2, "eagle/model-f32.gguf", 0, "cannot start as the EAGLE-3 head"},
		{3, "none.gguf", 0, "none.gguf"},
	} {
		r := tinyEagle(c.version, 1)
		r.Start, r.FFN = filepath.Join(j.Dir, filepath.FromSlash(c.start)), c.ffn
		if err := r.Prepare(&j); err == nil || !strings.Contains(err.Error(), c.why) {
			t.Errorf("%s, an MLP of width %d: error %v, want %q", c.start, c.ffn, err, c.why)
		}
	}
}

// weights returns the tensors of a file by name.
func weights(t *testing.T, path string) map[string][]float32 {
	t.Helper()
	f, err := gguf.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	all := map[string][]float32{}
	for _, info := range f.Tensors {
		if info.Name != "d2t" {
			x, err := f.Load(info.Name)
			if err != nil {
				t.Fatal(err)
			}
			if all[info.Name], err = x.Float32s(); err != nil {
				t.Fatal(err)
			}
		}
	}
	return all
}
