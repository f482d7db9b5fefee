package heads_test

import (
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/grovellm/grove/internal/convert"
	"github.com/grovellm/grove/internal/drafters/registry"
	"github.com/grovellm/grove/internal/drafters/synthetic"
	"github.com/grovellm/grove/internal/heads"
	"github.com/grovellm/grove/internal/heads/headfile"
	"github.com/grovellm/grove/internal/model"
	"github.com/grovellm/grove/internal/model/synth"
	"github.com/grovellm/grove/internal/nn"
	"github.com/grovellm/grove/tensor"
)

// toy is a kind of head that grove does not have: a projection of taps, and a layer.
type toy struct {
	headfile.Base
	Speed int // only its files know it
}

var toyKind = headfile.Kind{Name: "toy head", Archs: []string{"toy"}, Whole: []string{"toy"}, New: func() headfile.Shape {
	return new(toy)
}, Pairs: true}

func init() { headfile.Register(&toyKind) }

func (*toy) Kind() *headfile.Kind                 { return &toyKind }
func (c *toy) Validate() error                    { return headfile.CheckTaps(c.Taps, c.TargetLayers) }
func (*toy) FileArch() string                     { return "toy" }
func (*toy) Folders() (authors, speculators bool) { return true, false }
func (c *toy) Describe(bool) string               { return fmt.Sprintf("toy of speed %d", c.Speed) }
func (c *toy) Draw(rng *rand.Rand, _ string, unit int) {
	c.Arch = "llama"
	c.Layers = 1
	c.Speed = unit + rng.IntN(9)
}

func (c *toy) Parts() headfile.Parts {
	return headfile.Parts{
		headfile.Linear("fc", new(nn.Linear), c.Hidden, len(c.Taps)*c.Hidden, true),
		&headfile.Blocks{Of: &c.Config, To: new([]nn.Block)},
	}
}

func (c *toy) Keys(k *headfile.Keys) {
	k.Int(".speed", &c.Speed)
	k.Taps(&c.Base)
}

func (c *toy) ReadFolder(f *headfile.File) (string, error) {
	if !f.Has("toy.fc.weight") {
		return "", toyKind.Refuse("the folder has no tensor toy.fc.weight")
	}
	var more struct {
		Speed        int   `json:"toy_speed"`
		Taps         []int `json:"toy_taps"`
		TargetLayers int   `json:"num_target_layers"`
	}
	base, err := f.FolderLayers("layers.0.self_attn.q_norm.weight", &more)
	if err == nil && more.Speed == 0 {
		err = toyKind.Refuse("there is no toy_speed")
	}
	*c = toy{headfile.Base{Config: base, Taps: more.Taps, TargetLayers: more.TargetLayers}, more.Speed}
	return "", err
}

func (c *toy) FolderFields(m map[string]any, _ tensor.Type, _ []tensor.Tensor, _ *model.Config) (map[string]any, string,
	error) {
	m["toy_speed"] = c.Speed
	m["toy_taps"] = c.Taps
	m["architectures"] = []string{"Toy"}
	return m, "", nil
}

func (*toy) Place(name, _ string) headfile.Place {
	hf, _ := model.HFName(model.Head, name)
	return headfile.Place{Name: "toy." + hf}
}

// A kind needs only a registered Shape. Then its heads are made, written and read in either form,
// distinguished from others, checked against a target, and converted back and forth.
func TestNewKind(t *testing.T) {
	dir, ctx := t.TempDir(), t.Context()
	at := func(name string) string { return filepath.Join(dir, name) }
	s, err := synth.Lookup("tiny-llama3")
	if err != nil {
		t.Fatal(err)
	}
	if err := synth.WriteHF(ctx, at("target"), s, synth.Options{Seed: 1}); err != nil {
		t.Fatal(err)
	}
	target, err := model.ReadFolder(at("target"))
	if err != nil {
		t.Fatal(err)
	}
	for seed := range uint64(2) {
		shape := synthetic.Shape(rand.New(rand.NewPCG(seed, 1)), &toyKind, "", target, tensor.F32)
		weights, err := synthetic.Tensors(shape, tensor.F32, seed)
		if err != nil {
			t.Fatal(err)
		}
		file, folder := at(fmt.Sprint(seed, ".gguf")), at(fmt.Sprint(seed, "-hf"))
		if err := headfile.WriteGGUF(file, "toy", shape, weights, nil, nil, tensor.F32); err != nil {
			t.Fatal(err)
		}
		if _, err := convert.ToHF(ctx, file, folder, convert.Options{Type: convert.Keep}); err != nil {
			t.Fatal(err)
		}
		again := at(fmt.Sprint(seed, "-again.gguf"))
		if _, err := convert.ToGGUF(ctx, folder, again, convert.Options{Type: convert.Keep, Target: at("target")}); err != nil {
			t.Fatal(err)
		}
		var first []tensor.Tensor
		for _, path := range []string{file, again} {
			f, err := heads.Read(registry.Head{Name: path})
			if err != nil {
				t.Fatal(err)
			}
			if got := *f.Shape.(*toy); got.Speed != shape.(*toy).Speed || !cmp.Equal(got.Taps, shape.(*toy).Taps) {
				t.Errorf("seed %d, %s: %+v", seed, path, got)
			}
			for i, w := range f.Weights {
				w, err := w.ReadAll()
				if err != nil {
					t.Fatal(err)
				}
				f.Weights[i] = w
				if first != nil && !sameTensor(first, w) {
					t.Errorf("seed %d: tensor %s is another after both conversions", seed, w.Name)
				}
			}
			if first == nil {
				first = f.Weights
			}
			f.Close()
		}
		for _, path := range []string{file, folder} {
			h := registry.Head{Name: path}
			if text, err := heads.Describe(h); err != nil || !strings.HasPrefix(text, "toy of speed") || !heads.Is(h) {
				t.Errorf("%q, %v", text, err)
			}
			other := target
			other.Hidden++
			if heads.Check(h, target) != nil || heads.Check(h, other) == nil {
				t.Errorf("%s: %v for its target, %v for another", path, heads.Check(h, target), heads.Check(h, other))
			}
		}
	}
	if _, err := model.Open(at("0.gguf"), model.Options{}); err == nil || !strings.Contains(err.Error(), "a drafter's head") {
		t.Errorf("a head for a model: %v", err)
	}
}

func sameTensor(list []tensor.Tensor, w tensor.Tensor) bool {
	for _, x := range list {
		if x.Name == w.Name {
			return cmp.Equal(x.Shape, w.Shape) && cmp.Equal(x.Data, w.Data)
		}
	}
	return false
}
