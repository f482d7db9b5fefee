// Weights on their way from a file into packed matrices.

package model

import (
	"fmt"
	"slices"

	"github.com/grovellm/grove/gguf"
	"github.com/grovellm/grove/internal/gemm"
	"github.com/grovellm/grove/internal/par"
	"github.com/grovellm/grove/tensor"
)

// Loader is the Weights of an open file. It lists the matrices that a network asks for, and then
// packs them all on every worker.
type Loader struct {
	src      tensors
	arch     string
	progress func(done, total int64)
	jobs     []packing
	used     map[string]bool // by the file's own names
}

// NewGGUFLoader returns the weights of a GGUF file that is no model, such as a drafter's head; arch is what errors call it.
func NewGGUFLoader(f *gguf.File, arch string) *Loader {
	return &Loader{src: &ggufSource{Config{Arch: arch}, f}, arch: arch}
}

// NewLoader returns the weights of tensors that bear GGUF's names, wherever they come from.
func NewLoader(list []tensor.Tensor, arch string) *Loader {
	s := listSource{}
	for _, t := range list {
		s[t.Name] = t
	}
	return &Loader{src: s, arch: arch}
}

// listSource is tensors by name.
type listSource map[string]tensor.Tensor

func (s listSource) tensor(name string) (tensor.Tensor, bool, error) {
	t, ok := s[name]
	return t, ok, nil
}

func (listSource) done(tensor.Tensor) {}

// Used reports whether a network asked for the tensor that the file calls name.
func (l *Loader) Used(name string) bool { return l.used[name] }

// refuseUnused returns an error that names the first tensor of a list, by the file's names, that no
// network asked for.
func (l *Loader) refuseUnused(names []string) error {
	for _, name := range names {
		if !l.used[name] {
			return fmt.Errorf("tensor %s: grove does not compute %s models with it: "+
				"run the model with a program that does", tensor.Quote(name), l.arch)
		}
	}
	return nil
}

// packing is one matrix to be packed.
type packing struct {
	t   tensor.Tensor
	dst *gemm.Matrix
}

// Has reports whether there is such a tensor.
func (l *Loader) Has(name string) bool {
	_, ok, err := l.src.tensor(name)
	return ok || err != nil // what is there and cannot be read is for Vector to report
}

// get returns a tensor of the shape it must have.
func (l *Loader) get(name string, shape ...int) (tensor.Tensor, error) {
	t, ok, err := l.src.tensor(name)
	switch {
	case err != nil:
		return t, err
	case !ok:
		return t, fmt.Errorf("tensor %s is missing: the file is incomplete, or not of architecture %s", name, l.arch)
	case !slices.Equal(t.Shape, shape):
		return t, fmt.Errorf("tensor %s has shape %v: want %v for this model", name, t.Shape, shape)
	}
	if l.used == nil {
		l.used = map[string]bool{}
	}
	l.used[t.Name] = true
	return t, nil
}

// Vector loads a vector of n elements.
func (l *Loader) Vector(name string, n int) ([]float32, error) {
	t, err := l.get(name, n)
	if err != nil {
		return nil, err
	}
	return t.Float32s()
}

// Matrix makes room for weights that Pack will fill.
func (l *Loader) Matrix(name string, out, in int) (*gemm.Matrix, error) {
	t, err := l.get(name, out, in)
	if err != nil {
		return nil, err
	}
	m, err := gemm.New(packings[t.Type].to, out, in)
	if err != nil {
		return nil, fmt.Errorf("tensor %s: %w", name, err)
	}
	l.jobs = append(l.jobs, packing{t, m})
	return m, nil
}

// Pack fills every matrix from its tensor, in parallel, and lets go of the file's pages as it goes.
func (l *Loader) Pack(pool *par.Pool) error {
	var done, total int64
	for _, j := range l.jobs {
		total += int64(len(j.t.Data))
	}
	for _, j := range l.jobs {
		t, err := recoded(j.t, pool)
		if err != nil {
			return err
		}
		p := &packJob{dst: j.dst, data: t.Data}
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
