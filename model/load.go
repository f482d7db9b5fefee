package model

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"

	"github.com/grovellm/grove/gguf"
	"github.com/grovellm/grove/internal/gemm"
	"github.com/grovellm/grove/internal/par"
	"github.com/grovellm/grove/nn"
	"github.com/grovellm/grove/tensor"
)

// Options says how to open a model.
type Options struct {
	Threads int // workers; 0: as many as the program may use (GOMAXPROCS)
	Context int // most tokens of a sequence; 0: what the model was made for

	// Workers is an open model whose workers this one is to use instead of its own, such as the target a draft model
	// works for: their passes take turns. It must outlive this model. Threads is then not read.
	Workers *Model

	// Pad, where it is not 0, pads the model to about so many parameters: its logits stay the same to the bit, its passes cost
	// what those of a model of that size cost. PadType is the type of the layers added: BF16, F16 or Q8_0; its zero value
	// stands for BF16.
	Pad     int64
	PadType tensor.Type

	Progress func(done, total int64) // called as weights load, in bytes; may be nil
}

// Open loads the model at path: a GGUF file or a Hugging Face folder.
func Open(path string, o Options) (*Model, error) {
	src, err := openSource(path)
	return finish(path, src, err, o)
}

// OpenGGUF loads a model from the contents of a GGUF file, such as one embedded in a program. name stands for its path
// in errors.
func OpenGGUF(name string, data []byte, o Options) (*Model, error) {
	src, err := openGGUF(gguf.Parse(name, data))
	return finish(name, src, err, o)
}

// finish loads a model from a source that was opened, or was not.
func finish(name string, src source, err error, o Options) (*Model, error) {
	if err != nil {
		return nil, named(name, err)
	}
	m, err := load(src, o)
	if err != nil {
		return nil, errors.Join(named(name, err), src.Close())
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
	return openGGUF(gguf.Open(path))
}

func load(src source, o Options) (*Model, error) {
	var err error
	if o.Pad != 0 {
		if src, err = pad(src, o.Pad, o.PadType); err != nil {
			return nil, err
		}
	}
	c, err := src.config()
	if err != nil {
		return nil, err
	}
	if o.Context < 0 || o.Threads < 0 {
		return nil, fmt.Errorf("options: context %d, threads %d: want no negative number", o.Context, o.Threads)
	}
	if o.Context == 0 {
		o.Context = c.Context
	}
	l := &loader{src: src, arch: c.Arch, progress: o.Progress}
	network, err := NewNetwork(c, l)
	if err != nil {
		return nil, err
	}
	t, err := src.tokenizer()
	if err != nil {
		return nil, err
	}
	if t != nil && t.VocabSize() > c.Vocab {
		return nil, fmt.Errorf("the tokenizer has %d tokens, the embedding only %d rows: they are not of one model", t.VocabSize(), c.Vocab)
	}
	m := &Model{
		Network: *network, Tokenizer: t, limit: o.Context,
		pages: nn.Pages{Layers: c.Layers, Heads: c.KVHeads, Dim: c.HeadDim},
	}
	if o.Workers != nil {
		m.pool, m.guest = o.Workers.pool, true
	} else {
		m.pool = par.New(o.Threads)
	}
	if err := l.pack(m.pool); err != nil {
		return nil, errors.Join(err, m.Close())
	}
	return m, nil
}

// loader is the weights of an open file. It lists the matrices that the network asks for,
// and then packs them all on every worker.
type loader struct {
	src      source
	arch     string
	progress func(done, total int64)
	jobs     []packing
}

// packing is one matrix to be packed.
type packing struct {
	t   tensor.Tensor
	dst *gemm.Matrix
}

func (l *loader) Has(name string) bool {
	_, ok, err := l.src.tensor(name)
	return ok || err != nil // what is there and cannot be read is for Vector to report
}

// get returns a tensor of the shape it must have.
func (l *loader) get(name string, shape ...int) (tensor.Tensor, error) {
	t, ok, err := l.src.tensor(name)
	switch {
	case err != nil:
		return t, err
	case !ok:
		return t, fmt.Errorf("tensor %s is missing: the file is incomplete, or not of architecture %s", name, l.arch)
	case !slices.Equal(t.Shape, shape):
		return t, fmt.Errorf("tensor %s has shape %v: want %v for this model", name, t.Shape, shape)
	}
	return t, nil
}

func (l *loader) Vector(name string, n int) ([]float32, error) {
	t, err := l.get(name, n)
	if err != nil {
		return nil, err
	}
	return t.Float32s()
}

// Matrix makes room for weights that pack will fill.
func (l *loader) Matrix(name string, out, in int) (*gemm.Matrix, error) {
	t, err := l.get(name, out, in)
	if err != nil {
		return nil, err
	}
	m, err := gemm.New(packedType(t.Type), out, in)
	if err != nil {
		return nil, fmt.Errorf("tensor %s: %w", name, err)
	}
	l.jobs = append(l.jobs, packing{t, m})
	return m, nil
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

// pack fills every matrix from its tensor, in parallel, and lets go of the file's pages as it goes.
func (l *loader) pack(pool *par.Pool) error {
	var done, total int64
	for _, j := range l.jobs {
		total += int64(len(j.t.Data))
	}
	for _, j := range l.jobs {
		data := j.t.Data
		if packedType(j.t.Type) == gemm.F32 && j.t.Type != tensor.F32 {
			var err error
			if data, err = widen(j.t, pool); err != nil {
				return err
			}
		}
		p := &packJob{dst: j.dst, data: data}
		pool.Run((j.dst.Panels()+packChunk-1)/packChunk, p)
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
