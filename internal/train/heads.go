package train

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"path/filepath"
	"slices"

	"github.com/grovellm/grove/internal/autograd"
	"github.com/grovellm/grove/internal/drafters/shortlist"
	"github.com/grovellm/grove/internal/heads/headfile"
	"github.com/grovellm/grove/internal/kernels/gemm"
	"github.com/grovellm/grove/internal/model"
	"github.com/grovellm/grove/internal/nn"
	"github.com/grovellm/grove/tensor"
)

// The parts that trainings of all kinds of heads over a frozen target share: the parts of a recipe,
// the memory with which a head is computed, opening a learner, and the way from the text to the
// files. A kind's own package has its recipe, gradient and measures.

// OverTarget is a head over a frozen target, except for its own network.
type OverTarget struct {
	Params *autograd.Params
	Target Frozen
	Exec   *nn.Exec
	Tape   *autograd.Tape

	pages  nn.Pages
	caches []*nn.Cache // of texts
}

// NewOverTarget starts building a head that reads some layers of a target, and whose products run
// as kind; Made must be called once its network exists.
func NewOverTarget(target *model.Model, taps []int, kind gemm.Type) OverTarget {
	return OverTarget{Params: autograd.NewParams(kind), Target: NewFrozen(target, taps), Exec: nn.NewExec(target.Pool())}
}

// Made completes a head begun with NewOverTarget: pages returns the memory of the network's caches.
func (h *OverTarget) Made(pages func() nn.Pages) {
	h.Tape = autograd.NewTape(h.Exec, h.Params)
	h.pages = pages()
}

// Init draws the weights in the same way as those of a language model.
func (h *OverTarget) Init(seed uint64) {
	Initialise(h.Params, seed, h.pages.Layers)
	h.Pack()
}

// Pack makes the head compute with its current parameters.
func (h *OverTarget) Pack() { h.Params.Pack(h.Tape.Products()) }

// Cache returns the cache of the i-th text.
func (h *OverTarget) Cache(i int) *nn.Cache {
	for i >= len(h.caches) {
		h.caches = append(h.caches, h.pages.NewCache())
	}
	return h.caches[i]
}

// Basis is the part that the recipes of all kinds of heads share.
type Basis struct {
	Seed      uint64
	Precision string // of products: f32 or bf16
	Course
	HeadText
}

// NewBasis returns the basis of grove's own recipes.
func NewBasis(seed uint64, steps int) Basis {
	return Basis{Seed: seed, Precision: "bf16", HeadText: DefaultHeadText(), Course: Course{
		Steps: steps, Schedule: Plateau(0.02), Optimizer: DefaultOptimizer(), Clip: 1, ValidateEvery: 200}}
}

// Common returns the basis of the recipe that embeds it.
func (b *Basis) Common() *Basis { return b }

// mostSteps is more than any course has: the texts for more of them would not fit on a disk.
const mostSteps = 10_000_000

// CheckBasis refuses values with which no head with these layers can be trained.
func (b *Basis) CheckBasis(layers Layering) error {
	c := &b.Course
	for _, rate := range []float32{c.Optimizer.Rate, c.Optimizer.MuonRate} {
		if !(rate >= 0 && rate <= 10) {
			return fmt.Errorf("a learning rate of %g: want 0 to 10", rate)
		}
	}
	switch {
	case c.Steps < 1 || c.Steps > mostSteps:
		return fmt.Errorf("--steps %d: want 1 to %d", c.Steps, mostSteps)
	case !(c.Schedule.Warmup >= 0 && c.Schedule.Warmup <= 1):
		return fmt.Errorf("--warmup %g: want 0 to 1, the share of the steps", c.Schedule.Warmup)
	case !(c.Clip >= 0):
		return fmt.Errorf("--clip %g: want more than 0, or 0 for no limit", c.Clip)
	}
	return errors.Join(b.HeadText.check(), checkPrecision(b.Precision), layers.check())
}

// Layering is the shape of a head's layers.
type Layering struct {
	Layers, Heads, KVHeads, HeadDim, FFN int
	RopeBase                             float64
	Rope                                 *model.RopeConfig `json:"-"` // of the head that it starts from; nil: only RopeBase
}

// Base returns the base of the shape of a head with these layers, of Qwen3's kind, on the target's
// hidden states and vocabulary.
func (s Layering) Base(target *model.Config, taps []int) headfile.Base {
	return headfile.Base{Taps: taps, TargetLayers: target.Layers, Config: model.Config{
		Arch: arch, Vocab: target.Vocab, Hidden: target.Hidden, Context: target.Context, NormEps: target.NormEps,
		Layers: s.Layers, Heads: s.Heads, KVHeads: s.KVHeads, HeadDim: s.HeadDim, FFN: s.FFN,
		Rope: *cmp.Or(s.Rope, &model.RopeConfig{Base: s.RopeBase, Dims: s.HeadDim, Scale: 1}),
	}}
}

// check refuses layers that cannot be exported.
func (s Layering) check() error {
	for _, n := range []int{s.FFN, s.Heads * s.HeadDim} {
		if _, err := tensor.Q8_0.Size(n); err != nil {
			return fmt.Errorf("MLPs of width %d, %d heads of %d: %w", s.FFN, s.Heads, s.HeadDim, err)
		}
	}
	return nil
}

// Hand stands for a layer that begins otherwise, in a list of the target's blocks with which layers
// begin.
const Hand = -1

// BlocksOf returns the blocks in such a list.
func BlocksOf(from []int) []int {
	return slices.DeleteFunc(slices.Clone(from), func(b int) bool { return b == Hand })
}

// CheckFrom refuses layers that cannot begin with a list of the target's blocks.
func (s Layering) CheckFrom(from []int, target *model.Config) error {
	switch {
	case len(from) != s.Layers:
		return fmt.Errorf("%d layers begin as the target's blocks %v: want as many of each, or random weights",
			s.Layers, from)
	case s.Heads != target.Heads || s.KVHeads != target.KVHeads || s.HeadDim != target.HeadDim:
		return fmt.Errorf("layers have %d heads and %d key/value heads of %d, the target's blocks, as which they begin, %d and %d of %d: want attention of the target's shape, or random weights",
			s.Heads, s.KVHeads, s.HeadDim, target.Heads, target.KVHeads, target.HeadDim)
	case s.FFN > target.FFN:
		return fmt.Errorf("the head's MLPs are %d wide, the target's, as which they begin, %d: want no wider ones, or random weights", s.FFN, target.FFN)
	}
	return CheckBlocks(BlocksOf(from), target)
}

// CheckBlocks refuses blocks that the target does not have.
func CheckBlocks(from []int, target *model.Config) error {
	for _, b := range from {
		if b < 0 || b >= target.Layers {
			return fmt.Errorf("the target has no block %d: want 0 to %d", b, target.Layers-1)
		}
	}
	return nil
}

// checkPrecision refuses products of a kind that training does not support.
func checkPrecision(precision string) error {
	if precision != "f32" && precision != "bf16" {
		return fmt.Errorf("precision %q: want f32 or bf16", precision)
	}
	return nil
}

// Heads is the part that learners of all kinds of heads share. A kind's learner embeds it and adds
// Gradient, Validate and Work.
type Heads struct {
	*HeadTexts
	Job *Job

	over   *OverTarget
	shape  headfile.Shape
	output *nn.Linear // produces the head's logits
	tokens []int32    // of its draft vocabulary

	recipe HeadRecipe
}

// Made is a head that its kind has built over a target.
type Made struct {
	Over   *OverTarget
	Shape  headfile.Shape
	Output *nn.Linear
	Tokens []int32 // of a draft vocabulary; nil: it is the whole one
}

// Open opens the texts, generating those that do not exist yet, then builds the head of a recipe
// over the job's target, with drawn weights; warm, which may be nil, then improves them.
func (l *Heads) Open(ctx context.Context, j *Job, recipe HeadRecipe, text *Corpus, build func() (Made, error),
	warm func() error) (err error) {
	l.Job, l.recipe = j, recipe
	b := recipe.Common()
	if l.HeadTexts, err = j.OpenTexts(ctx, b.HeadText, b.Course.Steps, b.Seed, text); err != nil {
		return err
	}
	m, err := build()
	if err != nil {
		return err
	}
	l.over, l.shape = m.Over, m.Shape
	l.output, l.tokens = m.Output, m.Tokens
	l.over.Target.Features = j.Features
	if j.Features != nil {
		if need := l.over.Target.featureBytes(l.HeadTexts.tokens()); need > j.Features.limit {
			j.Notef("what the target computes of the text takes %d MB of the disk, of which --features keeps %d MB: the rest is computed each time", need>>20, j.Features.limit>>20)
		} else {
			j.Notef("what the target computes of the text takes %d MB of the disk", need>>20)
		}
	}
	l.over.Init(b.Seed)
	if warm != nil && !j.resumes { // a checkpoint has its own weights
		j.Notef("the head's beginning is made of texts")
		if err := warm(); err != nil {
			return fmt.Errorf("the head's beginning: %w", err)
		}
	}
	return nil
}

// FrequentTokens returns the n most frequent tokens of the text that the head learns from, most
// frequent first; nil if n is 0.
func (l *Heads) FrequentTokens(n int, text *Corpus) []int32 {
	if n == 0 {
		return nil
	}
	return shortlist.Count(l.Job.Target.Config.Vocab, text.Tok, "the text a head learns from",
		TokensOf(l.Sample(4096))...).Order[:n]
}

// Params returns the head's parameters.
func (l *Heads) Params() *autograd.Params { return l.over.Params }

// Pack makes the head compute with its current parameters.
func (l *Heads) Pack() { l.over.Pack() }

// Fingerprint identifies recipe, target and texts.
func (l *Heads) Fingerprint() string {
	return Fingerprint(l.recipe, append([]string{FingerprintModel(l.Job.Target)}, l.TextFingerprints()...)...)
}

// Finish runs after the last step; here it does nothing.
func (l *Heads) Finish(context.Context, string) error { return nil }

// Title describes the training.
func (l *Heads) Title(name string) string {
	return fmt.Sprintf("the head %s: %d parameters", name, l.over.Params.Count())
}

// StepTokens is the number of tokens in a step's texts.
func (l *Heads) StepTokens() int { return l.Rows * l.TextLength() }

// Validate measures the head on every held-out source: measure returns its loss there, and reports figures, which
// are prefixed with the source's name. A source whose answers are too short for the head's depths has neither.
func (l *Heads) Validate(measure func(t *HeldText, figure func(name string, v float64)) (autograd.Loss, error)) (losses,
	figures map[string]float64, err error) {
	losses, figures = map[string]float64{}, map[string]float64{}
	for i := range l.Sources {
		t := &l.Sources[i]
		measured := map[string]float64{}
		loss, err := measure(t, func(name string, v float64) { measured[t.Name+" "+name] = v })
		if err != nil {
			return nil, nil, err
		}
		if loss.Weight > 0 {
			losses[t.Name] = loss.Sum / loss.Weight
			maps.Copy(figures, measured)
		}
	}
	return losses, figures, nil
}

// Export writes the finished head in every form: GGUF, a folder, and, if vLLM's speculators support
// the kind and the job has their name for the target, a folder for them. With a draft vocabulary,
// and in folders of kinds that require it, the head has an output matrix, made of its target's rows
// if it has none of its own. The Q8_0 file is only for grove, which takes these rows and the
// vocabulary from the target.
func (l *Heads) Export(dir, name string, text *Corpus) error {
	l.shape.Common().TargetWeights = l.Job.Target.WeightsID()
	weights, err := headfile.Tensors(l.over.Params.All())
	if err != nil {
		return err
	}
	learned := weights
	if l.tokens != nil && !headfile.HasOutput(weights) {
		own, err := l.ofTarget("output.weight")
		if err != nil {
			return err
		}
		weights = append(weights[:len(weights):len(weights)], own)
	}
	completed := func(speculators bool) ([]tensor.Tensor, error) {
		whole := weights[:len(weights):len(weights)]
		for _, name := range l.shape.Kind().Missing(weights, speculators) {
			own, err := l.ofTarget(name)
			if err != nil {
				return nil, err
			}
			whole = append(whole, own)
		}
		return whole, nil
	}
	about := fmt.Sprintf("A drafter for a model of architecture %s with %d layers, hidden size %d and a vocabulary of %d tokens (fingerprint %s).",
		l.Job.Target.Config.Arch, l.Job.Target.Config.Layers, l.Job.Target.Config.Hidden, l.Job.Target.Config.Vocab,
		FingerprintModel(l.Job.Target))
	err = text.Export(dir, name, about, func(path string, t tensor.Type) error {
		if t == tensor.Q8_0 {
			return headfile.WriteGGUF(path, name, l.shape, learned, l.tokens, nil, t)
		}
		return headfile.WriteGGUF(path, name, l.shape, weights, l.tokens, text.vocabulary, t)
	})
	if err != nil {
		return err
	}
	folder, speculators := l.shape.Folders()
	if folder {
		whole, err := completed(false)
		if err != nil {
			return err
		}
		if err := headfile.WriteFolder(filepath.Join(dir, "hf"), l.shape, whole, l.tokens); err != nil {
			return err
		}
	}
	switch {
	case !speculators:
		return nil
	case l.Job.Verifier == "":
		l.Job.Notef("no folder for vLLM's speculators, which name their target: grove convert %s FOLDER --speculators --target FILE --verifier ORG/REPO writes it",
			filepath.Join(dir, "model-f32.gguf"))
		return nil
	}
	whole, err := completed(true)
	if err != nil {
		return err
	}
	target := l.Job.Target.Config
	target.Name = l.Job.Verifier
	return headfile.WriteSpeculators(filepath.Join(dir, "speculators"), l.shape, whole, l.tokens, target)
}

// ofTarget returns the output matrix with which the head learned, or the target's embedding.
func (l *Heads) ofTarget(name string) (tensor.Tensor, error) {
	if name == "output.weight" {
		return rowsOf(name, l.output.W, l.output.W.Out(), l.output.W.In())
	}
	c := l.Job.Target.Config
	return rowsOf(name, l.Job.Target.Embed, c.Vocab, c.Hidden)
}

// rowsOf returns a table of the target as a tensor.
func rowsOf(name string, t nn.Table, rows, cols int) (tensor.Tensor, error) {
	values := make([]float32, rows*cols)
	for i := range rows {
		t.Row(values[i*cols:(i+1)*cols], i)
	}
	return tensor.FromFloat32s(name, tensor.F32, []int{rows, cols}, values)
}

// AddNoise perturbs features of a text of some length, so that a head gets used to its own features: uniformly,
// with width 0.2 at 512 tokens and less in longer texts, as in the code of EAGLE's and Falcon's authors.
func AddNoise(features nn.Mat, length int, random *rand.Rand) {
	width := 0.2 * 512 / float64(length)
	for i := range features.Rows {
		for j := range features.Row(i) {
			features.Row(i)[j] += float32((random.Float64() - 0.5) * width)
		}
	}
}

// Trained is trained weights, and an output matrix of some of the target's rows, which is not
// trained unless it is the head's own.
type Trained struct {
	*autograd.Params
	Output *gemm.Matrix // nil: the head has none of the target's rows
	Own    bool         // the head's output matrix is trained
	Biases []string     // the optional ones that exist
}

// Has reports whether an optional tensor exists.
func (t Trained) Has(name string) bool {
	return name == "output.weight" && (t.Own || t.Output != nil) || slices.Contains(t.Biases, name)
}

// Matrix returns the output matrix, or a parameter.
func (t Trained) Matrix(name string, rows, cols int) (*gemm.Matrix, error) {
	if name == "output.weight" && !t.Own {
		return t.Output, nil
	}
	return t.Params.Matrix(name, rows, cols)
}

// Vector returns a parameter.
func (t Trained) Vector(name string, n int) ([]float32, error) { return t.Params.Vector(name, n), nil }

// Table returns a parameter.
func (t Trained) Table(name string, rows, cols int) (nn.Table, error) {
	return t.Params.Matrix(name, rows, cols)
}

// HeadTrainer is a Learner whose weights are part of a drafter.
type HeadTrainer interface {
	Learner
	Title(name string) string
	Finish(ctx context.Context, dir string) error // runs after the last step
	Export(dir, name string, text *Corpus) error
}

// HeadRecipe determines the weights of a head, together with the target and the text.
type HeadRecipe interface {
	Common() *Basis

	// Prepare takes over values from the files that the recipe names, and refuses a recipe that
	// cannot be completed for the target of a job.
	Prepare(j *Job) error

	// Open returns the head in its initial state, and generates texts that do not exist yet.
	Open(ctx context.Context, j *Job, text *Corpus) (HeadTrainer, error)
}

// TrainHead trains a head for the target of the job in DIR/NAME, on the text in DIR/generated,
// which all heads share, and exports it.
func (j *Job) TrainHead(ctx context.Context, name string, r HeadRecipe) error {
	if err := r.Prepare(j); err != nil {
		return err
	}
	text, err := j.OpenCorpus(ctx)
	if err != nil {
		return err
	}
	defer text.Close()
	dir := filepath.Join(j.Dir, name)
	saved, _ := checkpoints(dir) // the loop reports errors there
	own := *j
	own.resumes = len(saved) > 0
	l, err := r.Open(ctx, &own, text)
	if err != nil {
		return err
	}
	j.Notef("training %s", l.Title(name))
	loop := Loop{Course: r.Common().Course, Dir: dir, Pool: j.Target.Pool(), SaveEvery: j.SavesEvery(), Report: j.Report}
	if err := loop.Run(ctx, l); err != nil {
		return err
	}
	if err := l.Finish(ctx, loop.Dir); err != nil {
		return err
	}
	return l.Export(loop.Dir, "grove "+name, text)
}

// Export writes the plot of a finished run's loss, its card, which describes it with about, and,
// using write, the GGUF files.
func (c *Corpus) Export(dir, name, about string, write func(path string, t tensor.Type) error) error {
	if err := exportRun(dir, name, about, c); err != nil {
		return err
	}
	for _, t := range exported {
		if err := write(filepath.Join(dir, t.file), t.kind); err != nil {
			return err
		}
	}
	return nil
}
