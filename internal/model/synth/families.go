package synth

import (
	"cmp"
	"math/rand/v2"
	"slices"
	"strings"

	"github.com/grovellm/grove/internal/model"
	"github.com/grovellm/grove/tensor"
)

// families are the random models of all architectures. Their values are in the files arch_*.go.
var families []*family

// shapes are the named shapes, the tiny ones first.
var shapes []Shape

func init() {
	families = []*family{
		&llama, &mistral3, &mistral4, &nanbeige, &qwen2, &qwen3, &qwen2MoE, &qwen3MoE, &mellum, &olmoe,
		&smollm3, &deci, &granite, &graniteMoE, &graniteHybrid, &jamba, &falconH1, &nemotronH, &nemotronHMoE, &olmo, &olmo2,
		&gptOSS, &phi3, &phimoe, &gemma, &gemma2, &gemma3, &gemma3n, &gemma4, &stablelm, &gpt2, &gptneox,
		&glm4, &chatglm, &glm4MoE, &seedOSS, &hunyuan, &ernie45, &ernie45MoE, &bailing, &bailing2, &afmoe,
		&minimaxM2, &hunyuanMoE, &laguna, &smallthinker, &dots1, &exaoneMoE, &hyV3, &maincoder, &pangu,
		&llama4, &arcee, &jais2, &mimo2, &step35, &starcoder2, &phi2, &nemotron,
		&commandR, &cohere2, &cohere2MoE, &exaone, &exaone4, &internlm2, &deepseek,
		&deepseek2, &kimiLinear, &minicpm, &minicpm3, &apertus, &bitnet, &bitnetSiLU, &lfm2, &lfm2MoE, &qwen35,
		&qwen35MoE, &qwen3next,
	}
	var large []Shape
	for _, f := range families {
		for i, s := range f.small {
			s.Arch, s.Name = f.arch, cmp.Or(s.Name, f.arch)
			f.small[i] = s.or(smallShape)
		}
		for _, s := range f.named {
			s.Arch = f.arch
			if strings.HasPrefix(s.Name, "tiny-") {
				shapes = append(shapes, s.or(tinyShape))
			} else {
				large = append(large, s)
			}
		}
	}
	shapes = append(shapes, large...)
}

// tinyShape and smallShape have the values that shapes named tiny-... and small shapes leave out.
var (
	tinyShape = Shape{Vocab: 416, Hidden: 160, Layers: 3, Heads: 6, KVHeads: 2, HeadDim: 32, FFN: 416,
		Context: 1024, NormEps: 1e-5, RopeBase: 1e4, Tokens: Qwen2}
	smallShape = Shape{Vocab: 400, Hidden: 64, Layers: 2, Heads: 2, KVHeads: 1, HeadDim: 32, FFN: 96,
		Context: 64, NormEps: 1e-6, RopeBase: 1e4, Tokens: Qwen2}
)

// or sets the widths and numbers that a shape leaves out to those of another; all dimensions are rotated.
func (s Shape) or(other Shape) Shape {
	s.Vocab = cmp.Or(s.Vocab, other.Vocab)
	s.Hidden = cmp.Or(s.Hidden, other.Hidden)
	s.Layers = cmp.Or(s.Layers, other.Layers)
	s.Heads = cmp.Or(s.Heads, other.Heads)
	s.KVHeads = cmp.Or(s.KVHeads, other.KVHeads)
	s.HeadDim = cmp.Or(s.HeadDim, other.HeadDim)
	s.FFN = cmp.Or(s.FFN, other.FFN)
	s.Context = cmp.Or(s.Context, other.Context)
	s.NormEps = cmp.Or(s.NormEps, other.NormEps)
	s.RopeBase = cmp.Or(s.RopeBase, other.RopeBase)
	s.RopeDims = cmp.Or(s.RopeDims, s.HeadDim)
	s.Tokens = cmp.Or(s.Tokens, other.Tokens)
	return s
}

// family is the random models of an architecture.
type family struct {
	arch string

	// named are the shapes that commands know by name: those of published models, and tiny ones. The tiny ones
	// cover whatever can go wrong: widths that are not powers of two, heads that do not add up to the hidden
	// size, every way to share key/value heads, and rotations whose scaling starts within a test's reach.
	named []Shape

	// small are narrow, with two layers: tests read their files thousands of times. The first has the
	// architecture's name.
	small []Shape

	random func(d *drawing) // draws everything except widths, for Random
	fewest int              // the minimum number of layers; 0 means 1
	mixed  bool             // layers are of different kinds: only many layers show them together

	pairs bool // GGUF files rotate dimensions (2i, 2i+1) together, folders (i, i+dims/2)
	tiled bool // GGUF files have value heads in another order than folders
}

// familyOf returns the random models of an architecture, or nil if grove does not run it.
func familyOf(arch string) *family {
	i := slices.IndexFunc(families, func(f *family) bool { return f.arch == arch })
	if i < 0 {
		return nil
	}
	return families[i]
}

// Small lists the smallest shapes, one for nearly every architecture.
func Small() (list []Shape) {
	for _, f := range families {
		list = append(list, f.small...)
	}
	return list
}

// Random draws a shape of an architecture that is small enough for thousands of passes a second.
// Its widths are, where the type allows it, not multiples of panels and vectors, and it varies
// everything that the architecture leaves open: windows, scales, soft caps, experts, recurrent
// layers. The argument layers is the most that it has, if the architecture allows so few; 0: any.
func Random(rng *rand.Rand, arch string, typ tensor.Type, layers int) Shape {
	f := familyOf(arch)
	s := Shape{
		Name: "random", Arch: arch, Vocab: 400 + rng.IntN(60), Layers: max(f.fewest, 1+rng.IntN(2)), Context: 4096,
		NormEps: 1e-5, RopeBase: 1e4, Tokens: Qwen2, Tied: rng.IntN(2) == 0,
	}
	if f.mixed && rng.IntN(4) > 0 {
		s.Layers = 3 + rng.IntN(7)
	}
	if layers > 0 {
		s.Layers = max(f.fewest, min(s.Layers, layers))
	}
	s.KVHeads = 1 + rng.IntN(2)
	s.Heads = s.KVHeads * (1 + rng.IntN(3))
	d := &drawing{Rand: rng, s: &s, unit: 1}
	dims := []int{8, 18, 20, 32, 48, 64}
	switch n, _ := typ.Block(); n { // rows consist of whole blocks
	case 32:
		d.unit = 32
		dims = []int{32, 64}
	case 64, 128, 256:
		d.unit = 256
		s.Heads = s.KVHeads * []int{2, 4}[rng.IntN(2)]
		dims = []int{256 / s.Heads}
	}
	s.HeadDim = dims[rng.IntN(len(dims))]
	s.Hidden = d.unit * max(1, (32+rng.IntN(90))/d.unit)
	s.FFN = d.unit * max(1, (32+rng.IntN(130))/d.unit)
	s.Tokens = []Tokens{SPM, Llama3, Qwen2, GPT2}[rng.IntN(4)]
	s.RopeDims = s.HeadDim
	f.random(d)
	if s.Validate() != nil { // the architecture wants heads of another width, or its own output matrix
		s.Hidden = s.Heads * s.HeadDim
	}
	if s.Validate() != nil {
		s.Tied = !s.Tied
	}
	return s
}

// drawing is a shape that is being drawn.
type drawing struct {
	*rand.Rand
	s    *Shape
	unit int // the length of matrix rows is a multiple of it
}

// tune adds a function that sets more of the configuration, after those added before.
func (d *drawing) tune(set func(c *model.Config)) {
	before := d.s.Tune
	d.s.Tune = func(c *model.Config) {
		if before != nil {
			before(c)
		}
		set(c)
	}
}

// factor draws a scale.
func (d *drawing) factor() float64 { return 0.4 + d.Float64() }

// width draws the width of a matrix, below most if rows can be so short.
func (d *drawing) width(most int) int { return d.unit * max(1, d.IntN(most)/d.unit) }

// skewed draws a number below usual, or occasionally one below most.
func (d *drawing) skewed(usual, most int) int {
	if d.IntN(8) == 0 {
		return d.IntN(most)
	}
	return d.IntN(usual)
}

// scalePositions gives some models YaRN, unless their rotation has factors.
func (d *drawing) scalePositions() {
	if d.IntN(3) > 0 {
		return
	}
	d.tune(func(c *model.Config) {
		if c.Rope.Factors == nil {
			yarn(c, 4, 64)
		}
	})
}

// rotatePart draws the number of rotated dimensions per head.
func (d *drawing) rotatePart() { d.s.RopeDims = 2 * (1 + d.IntN(d.s.HeadDim/2)) }

// window draws, if has, a window that is shorter than tests' texts.
func (d *drawing) window(has bool) {
	if size := 1 + d.skewed(90, 900); has {
		d.tune(func(c *model.Config) { c.SetWindow(size) })
	}
}

// multipliers draws Granite's four scales.
func (d *drawing) multipliers() {
	scales := [4]float64{d.factor(), d.factor(), d.factor(), d.factor()}
	d.tune(func(c *model.Config) {
		c.AttnScale = scales[0]
		c.EmbedScale = scales[1]
		c.ResidualScale = scales[2]
		c.LogitScale = scales[3]
	})
}

// experts draws the number of experts, and how many of them a row uses.
func (d *drawing) experts() {
	experts := 1 + d.IntN(9)
	d.tune(sparse(experts, 1+d.IntN(experts)))
}

// groups draws experts in groups, in addition to experts that all rows use, after layers without experts.
func (d *drawing) groups() {
	groups, size := 1+d.IntN(3), 1+d.IntN(3)
	chosen := 1 + d.IntN(groups)
	used := 1 + d.IntN(chosen*size)
	width, shared := d.width(90), 1+d.IntN(2)
	dense := d.IntN(d.s.Layers + 1)
	norms := d.IntN(2) == 0
	norm := d.IntN(2) == 0
	scaled := d.IntN(2) == 0
	d.tune(func(c *model.Config) {
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
	})
}

// recurrent draws which layers are recurrent: never the last, and the taps of their convolutions.
func (d *drawing) recurrent() {
	kernel, list := 1+d.IntN(6), make([]bool, d.s.Layers)
	for i := range list[1:] {
		list[i] = d.IntN(2) == 0
	}
	d.tune(func(c *model.Config) { c.Kernel, c.Recurrent = kernel, list })
}

// delta draws recurrent layers with states of the gated delta rule.
func (d *drawing) delta(grouped bool) {
	d.recurrent()
	keyHeads, shared := 1+d.IntN(3), 1+d.IntN(3)
	dim := []int{8, 20, 32}[d.IntN(3)]
	if d.unit > 1 { // rows consist of whole blocks
		keyHeads, shared = 2, 1+d.IntN(2)
		dim = d.unit / 2
	}
	heads := model.DeltaConfig{KeyHeads: keyHeads, ValueHeads: keyHeads * shared, KeyDim: dim,
		ValueDim: dim, Grouped: grouped}
	d.tune(func(c *model.Config) { c.Delta = heads })
}

// laterExperts gives all layers except the first experts, in addition to shared ones that all rows use.
func laterExperts(c *model.Config, experts, used, width, shared int) {
	c.Experts, c.Used = experts, used
	c.ExpertFFN, c.SharedFFN = width, shared
	c.Dense = 1
}

// tuneExperts is laterExperts with the usual numbers.
func tuneExperts(c *model.Config) { laterExperts(c, 8, 3, 56, 112) }

// yarn scales positions beyond a context of original.
func yarn(c *model.Config, scale float64, original int) {
	c.Rope.Scale, c.Rope.Original = scale, original
	c.Rope.Yarn = &model.Yarn{Fast: 32, Slow: 1}
}

// sparse gives layers experts, of which each row uses some.
func sparse(experts, used int) func(c *model.Config) {
	return func(c *model.Config) { c.Experts, c.Used = experts, used }
}

// windowFirst gives the first of two layers a window.
func windowFirst(c *model.Config) {
	c.SetWindow(4)
	c.Windowed = []bool{true, false}
}
