package model

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"

	"github.com/grovellm/grove/internal/gemm"
	"github.com/grovellm/grove/internal/par"
	"github.com/grovellm/grove/nn"
	"github.com/grovellm/grove/tensor"
)

// Options says how to open a model.
type Options struct {
	Threads int // workers; 0: as many as the program may use (GOMAXPROCS)
	Context int // most tokens of a sequence; 0: what the model was made for

	Progress func(done, total int64) // called as weights load, in bytes; may be nil
}

// Open loads the model at path: a GGUF file or a Hugging Face folder.
func Open(path string, o Options) (*Model, error) {
	src, err := openSource(path)
	if err != nil {
		return nil, named(path, err)
	}
	m, err := load(src, o)
	if err != nil {
		return nil, errors.Join(named(path, err), src.Close())
	}
	return m, src.Close()
}

// named puts the path before an error that does not say it.
func named(path string, err error) error {
	if strings.Contains(err.Error(), path) {
		return err
	}
	return fmt.Errorf("%s: %w", path, err)
}

func openSource(path string) (source, error) {
	info, err := os.Stat(path)
	switch {
	case err != nil:
		return nil, err
	case info.IsDir():
		return openHF(path)
	}
	return openGGUF(path)
}

func load(src source, o Options) (*Model, error) {
	c, err := src.config()
	if err != nil {
		return nil, err
	}
	if err := c.validate(); err != nil {
		return nil, err
	}
	if o.Context < 0 || o.Threads < 0 {
		return nil, fmt.Errorf("options: context %d, threads %d: want no negative number", o.Context, o.Threads)
	}
	if o.Context == 0 {
		o.Context = c.Context
	}
	m := &Model{Config: c, limit: o.Context, pool: par.New(o.Threads)}
	l := &loader{src: src, c: &m.Config, pool: m.pool, progress: o.Progress}
	m.build(l)
	err = l.pack()
	if err == nil {
		m.Tokenizer, err = src.tokenizer()
	}
	if err == nil && m.Tokenizer != nil && m.Tokenizer.VocabSize() > c.Vocab {
		err = fmt.Errorf("the tokenizer has %d tokens, the embedding only %d rows: they are not of one model", m.Tokenizer.VocabSize(), c.Vocab)
	}
	if err != nil {
		m.pool.Close()
		return nil, err
	}
	m.pages = nn.Pages{Layers: c.Layers, Heads: c.KVHeads, Dim: c.HeadDim}
	return m, nil
}

// loader collects what there is to load, then packs it on all workers. Its methods keep the
// first error, so that the networks below read as lists of their parts.
type loader struct {
	src      source
	c        *Config
	pool     *par.Pool
	progress func(done, total int64)
	jobs     []packing
	err      error
}

// packing is one matrix to be packed.
type packing struct {
	t   tensor.Tensor
	dst *gemm.Matrix
}

func (l *loader) fail(format string, args ...any) {
	if l.err == nil {
		l.err = fmt.Errorf(format, args...)
	}
}

// get returns a tensor and checks its shape.
func (l *loader) get(name string, shape ...int) (tensor.Tensor, bool) {
	t, ok, err := l.src.tensor(name)
	switch {
	case err != nil:
		l.fail("%w", err)
	case ok && !slices.Equal(t.Shape, shape):
		l.fail("tensor %s has shape %v: want %v for this model", name, t.Shape, shape)
	case ok:
		return t, true
	}
	return t, false
}

// vector loads a small tensor as f32; nil when optional and absent.
func (l *loader) vector(name string, n int, optional bool) []float32 {
	t, ok := l.get(name, n)
	if !ok {
		if !optional {
			l.fail("tensor %s is missing: the file is incomplete, or not of architecture %s", name, l.c.Arch)
		}
		return nil
	}
	v, err := t.Float32s()
	if err != nil {
		l.fail("%w", err)
	}
	return v
}

// matrix loads weights of out×in; they are packed later, by pack.
func (l *loader) matrix(name string, out, in int) *gemm.Matrix {
	t, ok := l.get(name, out, in)
	if !ok {
		l.fail("tensor %s is missing: the file is incomplete, or not of architecture %s", name, l.c.Arch)
		return nil
	}
	m, err := gemm.New(packedType(t.Type), out, in)
	if err != nil {
		l.fail("tensor %s: %w", name, err)
		return nil
	}
	l.jobs = append(l.jobs, packing{t, m})
	return m
}

// packedType is the type a tensor is multiplied in. Types without kernels of their own are
// widened to f32, which loses nothing.
func packedType(t tensor.Type) gemm.Type {
	switch t {
	case tensor.F16:
		return gemm.F16
	case tensor.BF16:
		return gemm.BF16
	case tensor.Q8_0:
		return gemm.Q8_0
	}
	return gemm.F32
}

// linear loads the product called name, with its bias where the file has one.
func (l *loader) linear(name string, out, in int) nn.Linear {
	return nn.Linear{W: l.matrix(name+".weight", out, in), Bias: l.vector(name+".bias", out, true)}
}

// norm loads the normalisation called name; n is its width.
func (l *loader) norm(name string, n int) nn.Norm {
	center := l.c.Arch == "gptneox"
	return nn.Norm{
		Weight: l.vector(name+".weight", n, false),
		Bias:   l.vector(name+".bias", n, !center),
		Eps:    l.c.NormEps,
		Center: center,
	}
}

// pack fills every matrix from its tensor, in parallel, and lets go of the file's pages as it goes.
func (l *loader) pack() error {
	if l.err != nil {
		return l.err
	}
	var done, total int64
	for _, j := range l.jobs {
		total += int64(len(j.t.Data))
	}
	for _, j := range l.jobs {
		data := j.t.Data
		if packedType(j.t.Type) == gemm.F32 && j.t.Type != tensor.F32 {
			var err error
			if data, err = widen(j.t, l.pool); err != nil {
				return err
			}
		}
		p := &packJob{dst: j.dst, data: data}
		l.pool.Run((j.dst.Panels()+packChunk-1)/packChunk, p)
		l.src.done(j.t)
		if done += int64(len(j.t.Data)); l.progress != nil {
			l.progress(done, total)
		}
	}
	return nil
}

const packChunk = 4 // panels of a packing task

type packJob struct {
	dst  *gemm.Matrix
	data []byte
}

func (p *packJob) Do(_, task int) {
	p.dst.PackPanels(p.data, task*packChunk, min((task+1)*packChunk, p.dst.Panels()))
}
