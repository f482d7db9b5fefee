// Loading weights from a file into packed matrices.

package model

import (
	"fmt"
	"slices"

	"github.com/grovellm/grove/gguf"
	"github.com/grovellm/grove/internal/files/fileerr"
	"github.com/grovellm/grove/internal/files/recode"
	"github.com/grovellm/grove/internal/kernels/gemm"
	"github.com/grovellm/grove/internal/kernels/par"
	"github.com/grovellm/grove/tensor"
)

// Loader is the Weights of an open file. It lists the matrices that a network asks for, then packs
// them all on all workers.
type Loader struct {
	src      tensors
	arch     string
	progress func(done, total int64)
	jobs     []packing
	used     map[string]bool // by the file's own names
	memory   []TypeMemory    // of the tensors that the network asked for
	counted  map[string]bool // the tensors in memory, by the file's names
	dry      bool            // matrices are counted but get no memory
}

// NewGGUFLoader returns the weights of a GGUF file that is not a model, such as a drafter's head;
// errors call it arch.
func NewGGUFLoader(f *gguf.File, arch string) *Loader {
	return &Loader{src: &ggufSource{Config{Arch: arch}, f}, arch: arch}
}

// NewLoader returns the weights of tensors with GGUF's names, from any source.
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

// Used reports whether a network asked for the tensor that is called name in the file.
func (l *Loader) Used(name string) bool { return l.used[name] }

// refuseUnused returns an error that names the first tensor in a list, by the file's names, that no
// network asked for.
func (l *Loader) refuseUnused(names []string) error {
	for _, name := range names {
		if !l.used[name] {
			return fmt.Errorf("tensor %s: grove does not compute %s models with it: "+
				"run the model with a program that does", fileerr.Quote(name), l.arch)
		}
	}
	return nil
}

// packing is one matrix to be packed, or to be copied.
type packing struct {
	t    tensor.Tensor
	dst  *gemm.Matrix
	rows []byte // a copy of t's; dst is nil
}

// Has reports whether there is a tensor called name.
func (l *Loader) Has(name string) bool {
	_, ok, err := l.src.tensor(name)
	return ok || err != nil // a tensor that exists but cannot be read is for Vector to report
}

// get returns a tensor, which must have the given shape.
func (l *Loader) get(name string, shape ...int) (tensor.Tensor, error) {
	t, ok, err := l.src.tensor(name)
	switch {
	case err != nil:
		return t, err
	case !ok:
		name = l.nameOf(name)
		return t, fmt.Errorf("tensor %s is missing: the file is incomplete, or not of architecture %s", name, l.arch)
	case sameRows(t.Shape, shape): // files have further dimensions of 1, or lack some
		t.Shape = shape
	default:
		return t, fmt.Errorf("tensor %s has shape %v: want %v for this model", l.nameOf(name), t.Shape, shape)
	}
	if l.used == nil {
		l.used = map[string]bool{}
	}
	l.used[t.Name] = true
	return t, nil
}

// sameRows reports whether two shapes have rows of one length, and differ only in dimensions of 1 before it.
func sameRows(a, b []int) bool {
	many := func(shape []int) []int {
		rows := slices.Clone(shape[:len(shape)-1])
		return slices.DeleteFunc(rows, func(n int) bool { return n == 1 })
	}
	return len(a) > 0 && a[len(a)-1] == b[len(b)-1] && slices.Equal(many(a), many(b))
}

// nameOf returns the file's name for a tensor.
func (l *Loader) nameOf(name string) string {
	if s, ok := l.src.(*hfSource); ok {
		if folder, ok := HFName(s.c.Arch, name); ok {
			return folder
		}
	}
	return name
}

// Vector loads a vector of n elements.
func (l *Loader) Vector(name string, n int) ([]float32, error) {
	t, err := l.get(name, n)
	if err != nil {
		return nil, err
	}
	l.count(t, tensor.F32, 4*n)
	return t.Float32s()
}

// Vectors loads the vectors of a tensor.
func (l *Loader) Vectors(name string, count, n int) (list [][]float32, err error) {
	t, err := l.get(name, count, n)
	if err != nil {
		return nil, err
	}
	l.count(t, tensor.F32, 4*count*n)
	all, err := t.Float32s()
	for ; len(all) > 0; all = all[n:] {
		list = append(list, all[:n:n])
	}
	return list, err
}

// Matrix makes room for weights that Pack will fill.
func (l *Loader) Matrix(name string, out, in int) (*gemm.Matrix, error) {
	return l.Rows(name, []int{out, in}, 0, out)
}

// Rows makes room for some rows of a tensor, which Pack will fill.
func (l *Loader) Rows(name string, shape []int, from, to int) (*gemm.Matrix, error) {
	t, err := l.get(name, shape...)
	if err != nil {
		return nil, err
	}
	in := t.Cols()
	part := tensor.Tensor{Name: t.Name, Type: t.Type, Shape: []int{to - from, in},
		Reader: func(dst []byte, r0, r1 int) error { return t.ReadRows(dst, from+r0, from+r1) }}
	return l.plan(part)
}

// Columns makes room for some rows of a tensor as columns, which Pack will fill. Types with blocks become F32.
func (l *Loader) Columns(name string, shape []int, from, to int) (*gemm.Matrix, error) {
	t, err := l.get(name, shape...)
	if err != nil {
		return nil, err
	}
	t = withoutBlocks(t)
	part := tensor.Tensor{Name: t.Name, Type: t.Type, Shape: []int{t.Cols(), to - from}}
	size, row := t.RowBytes(), part.RowBytes()
	part.Reader = func(dst []byte, r0, r1 int) error {
		data := make([]byte, (to-from)*size)
		if err := t.ReadRows(data, from, to); err != nil {
			return err
		}
		for r := r0; r < r1; r++ {
			copyColumn(dst[(r-r0)*row:], data, r, size, size/t.Cols())
		}
		return nil
	}
	return l.plan(part)
}

// plan makes room for a matrix, which Pack will fill.
func (l *Loader) plan(t tensor.Tensor) (*gemm.Matrix, error) {
	m, err := l.newMatrix(t, t.Rows(), t.Cols())
	if err != nil {
		return nil, fmt.Errorf("tensor %s: %w", t.Name, err)
	}
	l.jobs = append(l.jobs, packing{t: t, dst: m})
	return m, nil
}

// Pack fills every matrix and table from its tensor, in parallel. Each worker reads a few rows at a
// time, so that little of the file is in memory in addition to the weights.
func (l *Loader) Pack(pool *par.Pool) error {
	var done, total int64
	for _, j := range l.jobs {
		total += int64(j.t.Rows() * j.t.RowBytes())
	}
	p := &packJob{buffers: make([][]byte, pool.Threads()), recoded: make([][]byte, pool.Threads()),
		errs: make([]error, pool.Threads())}
	for _, j := range l.jobs {
		p.start(j)
		pool.Run((p.t.Rows()+p.step-1)/p.step, p)
		for _, err := range p.errs {
			if err != nil {
				return err // and not the same for every worker
			}
		}
		done += int64(j.t.Rows() * j.t.RowBytes())
		if l.progress != nil {
			l.progress(done, total)
		}
	}
	return nil
}

// packBytes is roughly how much of a tensor a task reads. For four files (bf16, Q8_0, Q4_K) on 2 cores of an
// EPYC, half and double of it load equally fast, to within 5 %, and four times as much is 15 to 25 % slower.
const packBytes = 256 << 10

// packJob packs one tensor after another.
type packJob struct {
	packing
	step    int // rows per task, whole panels
	buffers [][]byte
	recoded [][]byte
	errs    []error // of the workers
}

func (p *packJob) start(j packing) {
	p.packing = j
	p.step = max(1, packBytes/(gemm.Panel*p.t.RowBytes())) * gemm.Panel
}

func (p *packJob) Do(worker, task int) {
	if p.errs[worker] != nil {
		return
	}
	r0, size := task*p.step, p.t.RowBytes()
	r1 := min(r0+p.step, p.t.Rows())
	if p.dst == nil {
		p.errs[worker] = p.t.ReadRows(p.rows[r0*size:r1*size], r0, r1)
		return
	}
	n := (r1 - r0) * size
	if len(p.buffers[worker]) < n {
		p.buffers[worker] = make([]byte, n)
	}
	rows := p.buffers[worker][:n]
	err := p.t.ReadRows(rows, r0, r1)
	if err == nil && recode.RunsAs(p.t.Type, p.t.Cols()) != p.t.Type {
		if rows, err = recode.Append(p.t.Type, rows, p.recoded[worker][:0]); err != nil {
			err = fmt.Errorf("tensor %s: %w", fileerr.Quote(p.t.Name), err)
		}
		p.recoded[worker] = rows
	}
	p.errs[worker] = err
	if err == nil {
		p.dst.PackRows(rows, r0/gemm.Panel, (r1+gemm.Panel-1)/gemm.Panel)
	}
}
