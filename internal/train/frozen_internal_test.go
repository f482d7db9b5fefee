package train

import (
	"context"
	"encoding/json"
	"math"
	"math/rand/v2"
	"path/filepath"
	"testing"

	"github.com/grovellm/grove/internal/model"
	"github.com/grovellm/grove/internal/model/synth"
	"github.com/grovellm/grove/tensor"
)

// Queries and keys of a target have the same scores in a head, which rotates halves, as in the target, be it one whose
// files have rotated pairs side by side, as Llama's, or in halves, as Qwen's.
func TestHeadsBeginWithTheTargetsScores(t *testing.T) {
	for _, name := range []string{"tiny-llama2", "tiny-llama3", "tiny-mistral", "tiny-granite", "tiny-qwen3"} {
		shape, err := synth.Lookup(name)
		if err != nil {
			t.Fatal(err)
		}
		path := filepath.Join(t.TempDir(), "model.gguf")
		if err := synth.Write(context.Background(), path, shape, synth.Options{Type: tensor.F32, Seed: 1}); err != nil {
			t.Fatal(err)
		}
		m, err := model.Open(path, model.Options{Threads: 1})
		if err != nil {
			t.Fatal(err)
		}
		defer m.Close()
		f, c := NewFrozen(m, nil), m.Config
		q, hasQueries := f.weights("blk.0.attn_q.weight")
		k, hasKeys := f.weights("blk.0.attn_k.weight")
		if !hasQueries || !hasKeys {
			continue // heads do not begin as its layers
		}
		rng := rand.New(rand.NewPCG(2, 3))
		x, y := make([]float32, c.Hidden), make([]float32, c.Hidden)
		for i := range x {
			x[i], y[i] = rng.Float32()-0.5, rng.Float32()-0.5
		}
		rotated := func(row func(i int) []float32, x []float32, position float64, pairs bool) []float64 {
			out, half := make([]float64, c.HeadDim), c.Rope.Dims/2
			for i := range out {
				for j, w := range row(i) {
					out[i] += float64(w) * float64(x[j])
				}
			}
			for i := range half {
				a, b := i, i+half
				if pairs {
					a, b = 2*i, 2*i+1
				}
				sin, cos := math.Sincos(position * math.Pow(c.Rope.Base, -float64(i)/float64(half)))
				out[a], out[b] = out[a]*cos-out[b]*sin, out[a]*sin+out[b]*cos
			}
			return out
		}
		score := func(a, b []float64) (sum float64) {
			for i := range a {
				sum += a[i] * b[i]
			}
			return sum
		}
		own := func(which int) func(i int) []float32 {
			return func(i int) []float32 {
				w := m.Blocks[0].QKV[which].W
				row := make([]float32, w.In())
				w.Row(row, i)
				return row
			}
		}
		ofHead := func(p []float32) func(i int) []float32 {
			return func(i int) []float32 { return p[i*c.Hidden : (i+1)*c.Hidden] }
		}
		want := score(rotated(own(0), x, 7, c.Rope.Neighbours), rotated(own(1), y, 3, c.Rope.Neighbours))
		got := score(rotated(ofHead(q.Data), x, 7, false), rotated(ofHead(k.Data), y, 3, false))
		if math.Abs(got-want) > 1e-6*(1+math.Abs(want)) {
			t.Errorf("%s: a score of %g in a head, %g in its target", name, got, want)
		}
	}
}

// A shape of a later version, with further fields of which none is used, has the fingerprint of the
// shape as it was; one that is used changes it.
func TestFingerprintOfLaterVersion(t *testing.T) {
	type part struct{ Heads, Dim int }
	type shape struct {
		Arch    string
		Layers  int
		Windows []bool
		Part    part
	}
	type later struct {
		Arch    string
		Kind    string
		Layers  int
		Windows []bool
		Skips   []bool
		Part    struct {
			part
			Gate  bool
			Scale float64
		}
		Other *part
		More  part
	}
	fingerprint := func(v any) string {
		b, err := json.Marshal(v)
		if err != nil {
			t.Fatal(err)
		}
		var shape any
		if err := json.Unmarshal(b, &shape); err != nil {
			t.Fatal(err)
		}
		return Fingerprint(withoutZeros(shape))
	}
	was := shape{Arch: "llama", Layers: 3, Windows: []bool{false, true}, Part: part{2, 16}}
	now := later{Arch: "llama", Layers: 3, Windows: []bool{false, true}}
	now.Part.part = was.Part
	want := fingerprint(was)
	if got := fingerprint(now); got != want {
		t.Errorf("fingerprint is %s, want %s", got, want)
	}
	for name, change := range map[string]func(s *later){
		"Kind":    func(s *later) { s.Kind = "x" },
		"Windows": func(s *later) { s.Windows = []bool{false, false} },
		"Skips":   func(s *later) { s.Skips = []bool{false} },
		"Gate":    func(s *later) { s.Part.Gate = true },
		"More":    func(s *later) { s.More.Dim = 1 },
	} {
		changed := now
		change(&changed)
		if fingerprint(changed) == want {
			t.Errorf("another %s changes nothing", name)
		}
	}
}
