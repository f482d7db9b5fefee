package check

import (
	"cmp"
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"

	"github.com/grovellm/grove/internal/drafters/registry"
	"github.com/grovellm/grove/internal/files/numtype"
	"github.com/grovellm/grove/internal/model"
	"github.com/grovellm/grove/internal/model/synth"
	"github.com/grovellm/grove/internal/nn"
	"github.com/grovellm/grove/tensor"
)

// maxThreads is the largest number of workers tried, whatever the processor has.
const maxThreads = 4

var (
	arches = model.Architectures()
	// heads are of those before the last
	types = []tensor.Type{tensor.F32, tensor.BF16, tensor.F16, tensor.Q8_0, tensor.Q4_0, tensor.Q4_K}

	// turns are types that take turns as one. Rows of the K types are long, which makes such models slow.
	turns = map[tensor.Type][]tensor.Type{
		tensor.Q4_0: {tensor.Q4_0, tensor.Q4_1, tensor.Q5_0, tensor.Q5_1, tensor.IQ4_NL, tensor.MXFP4},
		tensor.Q4_K: {tensor.Q4_K, numtype.IQ3_S, numtype.TQ2_0, numtype.Q2_K, numtype.IQ1_M, tensor.Q5_K, numtype.IQ2_XXS,
			numtype.Q1_0, numtype.IQ2_S, numtype.Q3_K, tensor.Q6_K, numtype.IQ1_S, numtype.IQ3_XXS, numtype.TQ1_0,
			numtype.IQ2_XS, numtype.Q2_0},
	}
)

// perGeneration is how many cases share a set of shapes: with more, a long check would see few
// shapes; with fewer, it would spend its time on writing models.
const perGeneration = 1024

// shapes is how many models a generation has, one of each architecture and type; case n is of model n modulo shapes.
func shapes() int { return len(arches) * len(types) }

// inOrder is the cases [from, to) in the order in which they run: generation by generation, and within
// one all cases of a model together, so that one model is open at a time.
func inOrder(from, to int) []int {
	order := make([]int, 0, to-from)
	for n := from; n < to; n++ {
		order = append(order, n)
	}
	slices.SortStableFunc(order, func(a, b int) int {
		return cmp.Or(cmp.Compare(a/perGeneration, b/perGeneration), cmp.Compare(a%shapes(), b%shapes()))
	})
	return order
}

// models makes random models as cases ask for them, and keeps the last one.
type models struct {
	dir        string
	seed       uint64
	generation int
	index      int      // of the model in its generation
	kept       *variant // nil: none
}

// variant is one random model, opened once for each number of threads.
type variant struct {
	shape  synth.Shape
	typ    tensor.Type
	path   string
	seed   uint64
	kv     nn.KVType
	opened [maxThreads]*opened

	headFiles []registry.Head // see heads
}

// opened is a model with one pass, kept so that a pass's memory sees many cases.
type opened struct {
	m *model.Model
	p *model.Pass

	draft  *model.Model    // a draft model for m on its workers; nil until asked for
	shared registry.Shared // of m's drafters
}

func (v *variant) String() string {
	s := v.shape
	return fmt.Sprintf("%s %v, keys and values %v (hidden %d, %d layers, %d heads, %d kv, dim %d, ffn %d, %d experts)", s.Arch, v.typ, v.kv, s.Hidden,
		s.Layers, s.Heads, s.KVHeads, s.HeadDim, s.FFN, s.Config().Experts)
}

// get returns the model of case n: every architecture and type in turn.
func (s *models) get(ctx context.Context, n int) (*variant, error) {
	generation, index := n/perGeneration, n%shapes()
	if s.kept != nil && generation == s.generation && index == s.index {
		return s.kept, nil
	}
	s.close()
	rng := rand.New(rand.NewPCG(s.seed^0x6d6f64656c, uint64(generation*shapes()+index)))
	arch, typ := index%len(arches), types[index/len(arches)]
	if all := turns[typ]; all != nil {
		typ = all[(arch+generation)%len(all)]
	}
	v := &variant{
		shape: synth.Random(rng, arches[arch], typ, 0),
		typ:   typ,
		path:  filepath.Join(s.dir, fmt.Sprintf("%d-%d.gguf", generation, index)),
		seed:  rng.Uint64(),
		kv:    randomKV(rng),
	}
	if model.KeepsAhead(v.shape.Arch) && rng.IntN(2) == 0 {
		v.shape.Tune = draftAhead(v.shape.Tune)
	}
	if err := synth.Write(ctx, v.path, v.shape, synth.Options{Type: v.typ, Seed: v.seed}); err != nil {
		return nil, err
	}
	s.generation, s.index = generation, index
	s.kept = v
	return v, nil
}

// threads returns the model with the given number of workers.
func (v *variant) threads(n int) (*opened, error) {
	o := v.opened[n-1]
	if o == nil {
		m, err := model.Open(v.path, model.Options{Threads: n, KV: v.kv})
		if err != nil {
			return nil, err
		}
		o = &opened{m: m, p: m.NewPass()}
		v.opened[n-1] = o
	}
	return o, nil
}

// randomKV draws what caches store, one of the types or what goes with the weights.
func randomKV(rng *rand.Rand) nn.KVType { return nn.KVType(rng.IntN(4)) }

func (v *variant) draftPath() string { return v.path + ".draft" }

// draftFor is a draft model for o: random too, but for the target's tokenizer, and sometimes with a
// context that ends early.
func (v *variant) draftFor(ctx context.Context, o *opened) (*model.Model, error) {
	if o.draft != nil {
		return o.draft, nil
	}
	rng := rand.New(rand.NewPCG(v.seed, 0x6472616674))
	if _, err := os.Stat(v.draftPath()); err != nil {
		typ := types[rng.IntN(len(types))]
		s := synth.Random(rng, arches[rng.IntN(len(arches))], typ, 1)
		s.Vocab = v.shape.Vocab
		s.Tokens = v.shape.Tokens
		if rng.IntN(4) == 0 {
			s.Context = 32 + rng.IntN(150)
		}
		if err := synth.Write(ctx, v.draftPath(), s, synth.Options{Type: typ, Seed: rng.Uint64()}); err != nil {
			return nil, err
		}
	}
	var err error
	o.draft, err = model.Open(v.draftPath(), model.Options{Workers: o.m, KV: randomKV(rand.New(rand.NewPCG(v.seed, 0x6b76)))})
	return o.draft, err
}

// close closes the model and removes its files.
func (s *models) close() {
	if s.kept == nil {
		return
	}
	for _, o := range s.kept.opened {
		if o == nil {
			continue
		}
		if o.draft != nil {
			o.draft.Close()
		}
		o.m.Close()
	}
	os.Remove(s.kept.path)
	os.Remove(s.kept.draftPath())
	s.kept.removeHeads()
	s.kept = nil
}

// draftAhead adds a layer behind the model's, which drafts.
func draftAhead(tune func(c *model.Config)) func(c *model.Config) {
	return func(c *model.Config) {
		tune(c)
		c.Ahead = 1
	}
}
