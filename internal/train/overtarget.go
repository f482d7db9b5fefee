package train

import (
	"context"
	"fmt"
	"path/filepath"

	"github.com/grovellm/grove/gguf"
	"github.com/grovellm/grove/internal/gemm"
	"github.com/grovellm/grove/internal/par"
	"github.com/grovellm/grove/model"
	"github.com/grovellm/grove/nn"
	"github.com/grovellm/grove/tensor"
)

// What trainings of heads over a frozen target share, whatever the head: the parts of its recipe, what it is computed with, how a
// learner is opened, and the way from the text to the files.

// overTarget is a head over a frozen target, but for its own network.
type overTarget struct {
	Params *nn.Params

	target frozen
	exec   *nn.Exec
	tape   *nn.Tape
	pages  nn.Pages
	caches []*nn.Cache // of texts
}

// newOverTarget begins a head that reads some layers of a target, and whose products run as kind; made is called with its network.
func newOverTarget(target *Network, taps []int, pool *par.Pool, kind gemm.Type) overTarget {
	return overTarget{Params: nn.NewParams(kind), target: newFrozen(target, taps), exec: nn.NewExec(pool)}
}

func (h *overTarget) made(pages func() nn.Pages) {
	h.tape = nn.NewTape(h.exec, h.Params)
	h.pages = pages()
}

// Init draws the weights, as those of a language model.
func (h *overTarget) Init(seed uint64) {
	initialise(h.Params, seed, h.pages.Layers)
	h.Pack()
}

// Pack makes the head compute with its parameters as they stand.
func (h *overTarget) Pack() { h.Params.Pack(h.tape.Products()) }

func (h *overTarget) params() *nn.Params { return h.Params }

// cache is that of the i-th text.
func (h *overTarget) cache(i int) *nn.Cache {
	for i >= len(h.caches) {
		h.caches = append(h.caches, h.pages.NewCache())
	}
	return h.caches[i]
}

// layering is the shape of a head's layers.
type layering struct {
	layers, heads, kvHeads, headDim, ffn int
	ropeBase                             float64
}

// config is that of a model with such layers, and otherwise the target's.
func (s layering) config(target Shape) model.Config {
	c := target.config()
	c.Layers, c.Heads, c.KVHeads, c.HeadDim, c.FFN, c.Tied = s.layers, s.heads, s.kvHeads, s.headDim, s.ffn, false
	c.Rope = model.RopeConfig{Base: s.ropeBase, Dims: s.headDim, Scale: 1}
	return c
}

// check refuses layers that cannot be exported.
func (s layering) check() error {
	for _, n := range []int{s.ffn, s.heads * s.headDim} {
		if _, err := tensor.Q8_0.Size(n); err != nil {
			return fmt.Errorf("MLPs of width %d, %d heads of %d: %w", s.ffn, s.heads, s.headDim, err)
		}
	}
	return nil
}

// checkFrom refuses layers that cannot begin as those of a list of the target's blocks (hand: as the layer that hands on an anchor).
func (s layering) checkFrom(from []int, target *Shape) error {
	switch {
	case len(from) != s.layers:
		return fmt.Errorf("%d layers begin as the target's blocks %v: want as many of each, or random weights", s.layers, from)
	case s.heads != target.Heads || s.kvHeads != target.KVHeads || s.headDim != target.HeadDim:
		return fmt.Errorf("layers have %d heads and %d key/value heads of %d, the target's blocks, as which they begin, %d and %d of %d: want attention of the target's shape, or random weights",
			s.heads, s.kvHeads, s.headDim, target.Heads, target.KVHeads, target.HeadDim)
	case s.ffn > target.FFN:
		return fmt.Errorf("the head's MLPs are %d wide, the target's, as which they begin, %d: want no wider ones, or random weights", s.ffn, target.FFN)
	}
	return checkBlocks(blocksOf(from), target)
}

// checkBlocks refuses blocks that the target has not.
func checkBlocks(from []int, target *Shape) error {
	for _, b := range from {
		if b < 0 || b >= target.Layers {
			return fmt.Errorf("the target has no block %d: want 0 to %d", b, target.Layers-1)
		}
	}
	return nil
}

// checkPrecision refuses products of a kind that training has not.
func checkPrecision(precision string) error {
	if precision != "f32" && precision != "bf16" {
		return fmt.Errorf("precision %q: want f32 or bf16", precision)
	}
	return nil
}

// learning is what learners of heads over a frozen target share: R is the recipe, H the head.
type learning[R any, H interface {
	params() *nn.Params
	Init(seed uint64)
	Pack()
}] struct {
	r      *R
	job    *Job
	pool   *par.Pool
	head   H
	source string // fingerprint of the target
	*headTexts
}

// basis is the part of a recipe that says what a head's learner is opened with.
type basis struct {
	text      HeadText
	seed      uint64
	precision string
}

func (b basis) check() error {
	if err := b.text.check(); err != nil {
		return err
	}
	return checkPrecision(b.precision)
}

// open opens the texts, which are made where they are not there yet, and the job's target; then the head, as make has it, with drawn
// weights, and with those that warm, which may be nil, makes of them.
func (l *learning[R, H]) open(ctx context.Context, b basis, shape Shape, text *corpus, make func(target *Network) (H, error), warm func() error) (err error) {
	if l.headTexts, err = l.job.openTexts(ctx, b.text, b.seed, text); err != nil {
		return err
	}
	l.pool = par.New(l.job.Threads)
	if err = l.begin(b, shape, make, warm); err != nil {
		l.pool.Close()
	}
	return err
}

func (l *learning[R, H]) begin(b basis, shape Shape, make func(target *Network) (H, error), warm func() error) error {
	target, source, err := l.job.openTarget(shape, l.pool, b.precision)
	if err != nil {
		return err
	}
	l.source = source
	if l.head, err = make(target); err != nil {
		return err
	}
	l.head.Init(b.seed)
	if warm == nil {
		return nil
	}
	if err := warm(); err != nil {
		return fmt.Errorf("the head's beginning: %w", err)
	}
	return nil
}

// Params, Pack and Fingerprint, which is of recipe, target and texts, are what a Learner has of them.
func (l *learning[R, H]) Params() *nn.Params { return l.head.params() }
func (l *learning[R, H]) Pack()              { l.head.Pack() }
func (l *learning[R, H]) Fingerprint() string {
	return fingerprint(l.r, append([]string{l.source}, l.fingerprints()...)...)
}

func (l *learning[R, H]) workers() *par.Pool { return l.pool }
func (l *learning[R, H]) close() error {
	l.pool.Close()
	return nil
}

func (l *learning[R, H]) finish(context.Context, string) error { return nil }

func (l *learning[R, H]) describe(name string) string {
	return fmt.Sprintf("the head %s: %d parameters", name, l.head.params().Count())
}

// apprentice is the learner of a stage of a job that makes a drafter's part.
type apprentice interface {
	Learner
	describe(name string) string
	workers() *par.Pool
	finish(ctx context.Context, dir string) error // what comes after the last step
	export(dir, name string, text *corpus) error
	close() error
}

// teach takes a learner, which open makes of the job's text, through its course in DIR/NAME, and exports what has become of it.
func (j *Job) teach(ctx context.Context, name string, vocab int, c Course, open func(text *corpus) (apprentice, error)) error {
	text, err := j.open(ctx, vocab)
	if err != nil {
		return err
	}
	defer text.Close()
	l, err := open(text)
	if err != nil {
		return err
	}
	defer l.close()
	j.note("training %s", l.describe(name))
	loop := Loop{Course: c, Dir: filepath.Join(j.Dir, name), Pool: l.workers(), SaveEvery: j.saveEvery(), Report: j.Report}
	if err := loop.Run(ctx, l); err != nil {
		return err
	}
	if err := l.finish(ctx, loop.Dir); err != nil {
		return err
	}
	return l.export(loop.Dir, "grove "+name, text)
}

// exportHead writes the plot of a finished run's loss, what a model card says of the training text, and, by write, the GGUF files.
// The Q8_0 file, which ships, has no vocabulary: the target's is the same.
func exportHead(dir string, text *corpus, write func(path string, vocabulary *gguf.File, t tensor.Type) error) error {
	if err := exportRun(dir, text); err != nil {
		return err
	}
	for _, t := range exported {
		vocabulary := text.vocabulary
		if t.kind == tensor.Q8_0 {
			vocabulary = nil
		}
		if err := write(filepath.Join(dir, t.file), vocabulary, t.kind); err != nil {
			return err
		}
	}
	return nil
}
