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
	"github.com/grovellm/grove/internal/model"
	"github.com/grovellm/grove/internal/model/synth"
	"github.com/grovellm/grove/internal/nn"
	"github.com/grovellm/grove/tensor"
)

// maxThreads is the largest number of workers tried, whatever the processor has.
const maxThreads = 4

var (
	arches = model.Architectures()
	types  = []tensor.Type{tensor.F32, tensor.BF16, tensor.F16, tensor.Q8_0, tensor.Q4_0, tensor.Q4_K} // heads are of those before the last

	// turns are types that take turns as one. Rows of the K types are long, which makes such models slow.
	turns = map[tensor.Type][]tensor.Type{
		tensor.Q4_0: {tensor.Q4_0, tensor.Q4_1, tensor.Q5_0, tensor.Q5_1, tensor.IQ4_NL, tensor.MXFP4},
		tensor.Q4_K: {tensor.Q4_K, tensor.IQ3_S, tensor.TQ2_0, tensor.IQ1_M, tensor.Q5_K, tensor.IQ2_XXS, tensor.Q1_0,
			tensor.IQ2_S, tensor.Q6_K, tensor.IQ1_S, tensor.IQ3_XXS, tensor.TQ1_0, tensor.IQ2_XS, tensor.Q2_0},
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
	return fmt.Sprintf("%s %v, keys and values %v (hidden %d, %d layers, %d heads, %d kv, dim %d, ffn %d, %d experts)", s.Arch, v.typ, v.kv, s.Hidden, s.Layers, s.Heads, s.KVHeads, s.HeadDim, s.FFN, s.Config().Experts)
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
		shape: randomShape(rng, arches[arch], typ),
		typ:   typ,
		path:  filepath.Join(s.dir, fmt.Sprintf("%d-%d.gguf", generation, index)),
		seed:  rng.Uint64(),
		kv:    randomKV(rng),
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

// draftFor is a draft model for o: random too, but for the target's tokenizer, and sometimes with a context that ends early.
func (v *variant) draftFor(ctx context.Context, o *opened) (*model.Model, error) {
	if o.draft != nil {
		return o.draft, nil
	}
	rng := rand.New(rand.NewPCG(v.seed, 0x6472616674))
	if _, err := os.Stat(v.draftPath()); err != nil {
		typ := types[rng.IntN(len(types))]
		s := randomShape(rng, arches[rng.IntN(len(arches))], typ)
		s.Vocab = v.shape.Vocab
		s.Tokens = v.shape.Tokens
		// whose layers are drawn each for itself
		if !slices.Contains([]string{"gemma4", "glm4moe", "cohere2", "deepseek2", "granitehybrid", "lfm2moe", "nemotron_h", "nemotron_h_moe"}, s.Arch) {
			s.Layers = 1
		}
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

// randomShape draws a shape small enough for thousands of passes a second, with widths that
// panels and vectors do not divide wherever the type allows it.
func randomShape(rng *rand.Rand, arch string, typ tensor.Type) synth.Shape {
	s := synth.Shape{
		Name: "check", Arch: arch, Vocab: 400 + rng.IntN(60), Layers: 1 + rng.IntN(2), Context: 4096,
		NormEps: 1e-5, RopeBase: 1e4, Tokens: synth.Qwen2, Tied: rng.IntN(2) == 0,
	}
	switch arch {
	case "gemma4":
		s.Layers = 2 + rng.IntN(5)
	case "granitehybrid", "nemotron_h", "nemotron_h_moe":
		s.Layers = 3 + rng.IntN(7)
	case "gemma2", "gemma3", "gpt-oss", "olmo2", "exaone4", "cohere2", "lfm2", "qwen35", "lfm2moe", "qwen35moe",
		"qwen3next": // layers of different kinds
		if rng.IntN(4) > 0 {
			s.Layers = 3 + rng.IntN(7)
		}
	}
	s.KVHeads = 1 + rng.IntN(2)
	s.Heads = s.KVHeads * (1 + rng.IntN(3))
	unit := 1
	dims := []int{8, 18, 20, 32, 48, 64}
	switch n, _ := typ.Block(); n { // rows are whole blocks
	case 32:
		unit, dims = 32, []int{32, 64}
	case 64, 128, 256:
		unit = 256
		s.Heads = s.KVHeads * []int{2, 4}[rng.IntN(2)]
		dims = []int{256 / s.Heads}
	}
	s.HeadDim = dims[rng.IntN(len(dims))]
	s.Hidden = unit * max(1, (32+rng.IntN(90))/unit)
	s.FFN = unit * max(1, (32+rng.IntN(130))/unit)
	s.Tokens = []synth.Tokens{synth.SPM, synth.Llama3, synth.Qwen2, synth.GPT2}[rng.IntN(4)]
	s.RopeDims = s.HeadDim
	switch arch {
	case "llama":
		if rng.IntN(2) == 0 {
			s.Llama3 = &synth.Llama3Rope{Factor: 8, Low: 1, High: 4, Original: 64}
		}
	case "gptneox":
		s.KVHeads = s.Heads
		s.Parallel = rng.IntN(2) == 0
		s.RopeDims = 2 * (1 + rng.IntN(s.HeadDim/2))
	case "phi3", "stablelm", "glm4", "glm4moe", "qwen35", "qwen35moe", "qwen3next":
		s.RopeDims = 2 * (1 + rng.IntN(s.HeadDim/2))
	}
	s.Biases = (arch == "glm4" || arch == "seed_oss" || arch == "glm4moe") && rng.IntN(2) == 0
	s.Tune = tune(rng, arch, typ)
	switch arch {
	case "gemma4":
		s.Tune = tuneGemma4(rng, &s, unit)
	case "glm4moe":
		s.Tune = tuneGrouped(rng, &s, unit)
	case "deepseek2":
		s.Tune = tuneLatent(rng, &s, unit)
	case "granitehybrid":
		s.Tune = tuneGraniteHybrid(rng, &s, unit)
	case "nemotron_h", "nemotron_h_moe":
		s.Tune = tuneNemotron(rng, &s, unit)
	}
	if model.Alike(arch) && rng.IntN(2) == 0 {
		s.Tune = draftAhead(s.Tune)
	}
	if s.Validate() != nil { // the architecture wants heads of another width, or its own output matrix
		s.Hidden = s.Heads * s.HeadDim
	}
	if s.Validate() != nil {
		s.Tied = !s.Tied
	}
	return s
}

// draftAhead adds a layer behind the model's, which drafts.
func draftAhead(tune func(c *model.Config)) func(c *model.Config) {
	return func(c *model.Config) {
		tune(c)
		c.Ahead = 1
	}
}

// tune draws what an architecture may have: a window that texts outgrow, scales, soft caps, a
// scaling of positions.
func tune(rng *rand.Rand, arch string, typ tensor.Type) func(c *model.Config) {
	windowed, size := rng.IntN(4) > 0, 1+skewed(rng, 90, 900)
	scaled := rng.IntN(3)
	x := func() float64 { return 0.4 + rng.Float64() }
	scales := []float64{x(), x(), x(), x()}
	attention, kernel := rng.Uint32N(1<<10), 1+rng.IntN(6)
	hybrid := func(c *model.Config) {
		c.Kernel = kernel
		c.Recurrent = make([]bool, c.Layers)
		for i := range c.Layers - 1 { // the last one has attention
			c.Recurrent[i] = attention>>i&1 == 0
		}
	}
	keyHeads, shared := 1+rng.IntN(3), 1+rng.IntN(3)
	dim := []int{8, 20, 32}[rng.IntN(3)]
	if n, _ := typ.Block(); n > 1 { // rows are whole blocks
		keyHeads, shared = 2, 1+rng.IntN(2)
		dim = n / 2
	}
	delta := func(c *model.Config) {
		hybrid(c)
		c.Delta = model.DeltaConfig{KeyHeads: keyHeads, ValueHeads: keyHeads * shared, KeyDim: dim, ValueDim: dim, Grouped: arch == "qwen3next"}
	}
	experts, used := 0, 0
	if model.Sparse(arch) || arch == "llama" && rng.IntN(3) == 0 {
		experts = 1 + rng.IntN(9)
		used = 1 + rng.IntN(experts)
	}
	dense, width := rng.Uint32N(1<<10), 1+rng.IntN(90)
	if n, _ := typ.Block(); n > 1 {
		width = n
	}
	return func(c *model.Config) {
		c.Experts, c.Used = experts, used
		if scaled == 0 && c.Rope.Factors == nil {
			c.Rope.Scale = 4
			c.Rope.Original = 64
			c.Rope.Yarn = &model.Yarn{Fast: 32, Slow: 1}
		}
		switch arch {
		case "llama", "olmo2", "phi3", "gemma2", "gemma3", "gpt-oss", "exaone4", "cohere2":
			if windowed || arch == "gpt-oss" || arch == "cohere2" {
				c.SetWindow(size)
			}
		case "lfm2":
			hybrid(c)
		case "lfm2moe":
			hybrid(c)
			c.ExpertFFN, c.Dense = width, int(dense)%(c.Layers+1)
		case "qwen35":
			delta(c)
		case "qwen35moe", "qwen3next":
			delta(c)
			c.SharedFFN = width
		case "minicpm":
			c.EmbedScale, c.ResidualScale = scales[1], scales[2]
		case "granite", "granitemoe":
			c.AttnScale = scales[0]
			c.EmbedScale = scales[1]
			c.ResidualScale = scales[2]
			c.LogitScale = scales[3]
		case "mistral3":
			if c.Rope.Yarn != nil {
				c.Temper = nn.Temper{Scale: 0.1, Length: c.Rope.Original}
			}
		}
		if arch == "phi3" && scaled == 1 {
			c.Rope.Original, c.Rope.Attn = 64, 1.2
			for i := range c.Rope.Dims / 2 {
				c.Rope.Short, c.Rope.Long = append(c.Rope.Short, 1), append(c.Rope.Long, 1+float32(i))
			}
		}
		if arch == "gemma2" {
			c.AttnCap, c.LogitCap = 5*scales[0], 7*scales[1]
		}
	}
}

// tuneGemma4 draws layers with a window and without, of other heads, layers that read others' keys and values, and
// experts or tables.
func tuneGemma4(rng *rand.Rand, s *synth.Shape, unit int) func(c *model.Config) {
	windowed := make([]bool, s.Layers)
	for i := range windowed[:s.Layers-1] {
		windowed[i] = i == 0 || rng.IntN(3) > 0
	}
	size, experts := 1+skewed(rng, 90, 900), rng.IntN(6)
	used, width := 1+rng.IntN(max(1, experts)), unit*max(1, rng.IntN(90)/unit)
	heads, dim := s.KVHeads, s.HeadDim
	values := rng.IntN(2) == 0
	if values {
		heads = s.Heads
	}
	if unit < 256 && s.HeadDim%4 == 0 && unit*s.Heads <= s.HeadDim*s.Heads/2 {
		dim = s.HeadDim / 2
	}
	sharing := rng.IntN(s.Layers)
	wide := rng.IntN(2) == 0
	perLayer := unit * rng.IntN(2) * max(1, rng.IntN(30)/unit)
	return func(c *model.Config) {
		c.SetGemma4Layers(dim, heads)
		c.Window = size
		c.Windowed = windowed
		c.KeyValues = values
		c.PerLayer = perLayer
		if experts > 0 {
			c.Experts = experts
			c.Used = used
			c.ExpertFFN = width
			return
		}
		for n := c.Layers - sharing; n < c.Layers; n++ { // what remains has both kinds
			if slices.Contains(windowed[:n], true) && slices.Contains(windowed[:n], false) {
				c.Sharing, c.WideSharing = c.Layers-n, wide
				return
			}
		}
	}
}

// tuneGraniteHybrid draws layers of Mamba-2, experts or none, and multipliers.
func tuneGraniteHybrid(rng *rand.Rand, s *synth.Shape, unit int) func(c *model.Config) {
	s.Hidden = s.Heads * s.HeadDim
	recurrent := make([]bool, s.Layers)
	for i := range recurrent {
		recurrent[i] = i == 0 || i < s.Layers-1 && rng.IntN(3) > 0
	}
	dims := []int{}
	for d := 2; d <= 32; d++ { // heads are twice the width together
		if 2*s.Hidden%d == 0 && (unit == 1 || d >= 16) {
			dims = append(dims, d)
		}
	}
	m := model.MambaConfig{HeadDim: dims[rng.IntN(len(dims))], StateDim: 1 + rng.IntN(40)}
	m.Heads = 2 * s.Hidden / m.HeadDim
	m.Groups = 1
	if n := 2 + rng.IntN(2); m.Heads%n == 0 {
		m.Groups = n
	}
	kernel := 1 + rng.IntN(6)
	still := rng.IntN(3) > 0
	experts, shared := rng.IntN(6), unit*max(1, rng.IntN(90)/unit)
	used := 1 + rng.IntN(max(1, experts))
	scales := [4]float64{}
	for i := range scales {
		scales[i] = 0.5 + rng.Float64()
	}
	return func(c *model.Config) {
		c.Kernel, c.Recurrent = kernel, recurrent
		c.Mamba = m
		if still {
			c.NoRope = slices.Repeat([]bool{true}, c.Layers)
		}
		if experts > 0 {
			c.Experts, c.Used = experts, used
			c.SharedFFN = shared
		}
		c.AttnScale = scales[0]
		c.EmbedScale = scales[1]
		c.ResidualScale = scales[2]
		c.LogitScale = scales[3]
	}
}

// tuneNemotron draws layers of one half each, and experts.
func tuneNemotron(rng *rand.Rand, s *synth.Shape, unit int) func(c *model.Config) {
	kinds := append([]int{0, 1, 2}, make([]int, s.Layers-3)...) // Mamba-2, attention, MLP or experts
	for i := range kinds[3:] {
		kinds[3+i] = rng.IntN(3)
	}
	rng.Shuffle(len(kinds), func(i, j int) { kinds[i], kinds[j] = kinds[j], kinds[i] })
	m := model.MambaConfig{Groups: 1 + rng.IntN(3), HeadDim: 1 + rng.IntN(24), StateDim: 1 + rng.IntN(40)}
	m.Heads = m.Groups * (1 + rng.IntN(3))
	if unit > 1 { // rows are whole blocks
		m.HeadDim, m.Heads = unit/4, 4*m.Groups
	}
	kernel, narrow := 1+rng.IntN(6), unit*rng.IntN(2)*max(1, rng.IntN(60)/unit)
	experts := func(*model.Config) {}
	if s.Arch == "nemotron_h_moe" {
		experts = tuneGrouped(rng, s, unit)
	}
	return func(c *model.Config) {
		experts(c)
		c.Dense, c.HeadNorms = 0, false
		if c.Experts > 0 {
			c.Rule.Sigmoid = true
			c.FFN, c.Narrow = c.ExpertFFN, narrow
		}
		c.Kernel, c.Mamba = kernel, m
		c.NoRope = slices.Repeat([]bool{true}, c.Layers)
		c.Recurrent, c.Bare = make([]bool, c.Layers), make([]bool, c.Layers)
		for i, k := range kinds {
			c.Recurrent[i] = k == 0
			c.Bare[i] = k == 2
		}
	}
}

// tuneGrouped draws experts in groups after layers without, beside experts that all rows have.
func tuneGrouped(rng *rand.Rand, s *synth.Shape, unit int) func(c *model.Config) {
	groups, size := 1+rng.IntN(3), 1+rng.IntN(3)
	chosen := 1 + rng.IntN(groups)
	used := 1 + rng.IntN(chosen*size)
	width, shared := unit*max(1, rng.IntN(90)/unit), 1+rng.IntN(2)
	dense := rng.IntN(s.Layers + 1)
	norms := rng.IntN(2) == 0
	norm := rng.IntN(2) == 0
	scaled := rng.IntN(2) == 0
	return func(c *model.Config) {
		c.Experts = groups * size
		c.Used = used
		c.ExpertFFN = width
		c.SharedFFN = width * shared
		c.Dense, c.HeadNorms = dense, norms
		c.Rule.Norm = norm
		c.Rule.Groups = groups
		c.Rule.Chosen = chosen
		if scaled {
			c.Rule.Scale = 1.75
		}
	}
}

// tuneLatent draws the widths of latent attention, and experts as tuneGrouped does, chosen by either rule.
func tuneLatent(rng *rand.Rand, s *synth.Shape, unit int) func(c *model.Config) {
	experts := tuneGrouped(rng, s, unit)
	width := func(most int) int { return unit * (1 + rng.IntN(max(1, most/unit))) }
	l := model.LatentConfig{Rank: width(80), PlainDim: width(40), ValueDim: width(40)}
	if rng.IntN(2) == 0 {
		l.QueryRank = width(60)
	}
	if l.Rank == 1 {
		l.Rank = 2
	}
	s.RopeDims = 2 * (1 + rng.IntN(16))
	s.KVHeads = 1
	s.HeadDim = l.Rank + s.RopeDims
	sigma, yarn := rng.IntN(2) == 0, rng.IntN(3) == 0
	return func(c *model.Config) {
		experts(c)
		c.SetLatent(l)
		c.HeadNorms = false
		c.Rule.Sigmoid, c.Rule.All = sigma, !sigma
		if !sigma {
			c.Rule.Norm = false
			c.Rule.Groups = 0
			c.Rule.Chosen = 0
		}
		if yarn {
			c.Rope.Scale = 4
			c.Rope.Original = 64
			c.Rope.Yarn = &model.Yarn{Fast: 32, Slow: 1, LogMul: 0.7, Plain: true}
		}
	}
}
