package model

import (
	"errors"
	"slices"

	"github.com/grovellm/grove/internal/kernels/gemm"
	"github.com/grovellm/grove/tensor"
)

// TypeMemory is what the tensors of one type take in a file, and in the memory of the model that is
// loaded from it.
type TypeMemory struct {
	Type    tensor.Type // in the file
	As      tensor.Type // in memory: the type that they are multiplied in, or looked up in
	Tensors int
	File    int64 // bytes in the file
	Memory  int64 // bytes in memory
}

// ReadMemory returns what the weights of the model at path take when it is open, type by type in
// the order of the network. It reads the descriptions of the tensors alone, but for a folder with an
// output matrix beside a tied embedding, which opening compares.
func ReadMemory(path string) ([]TypeMemory, error) {
	src, err := openSource(path)
	if err != nil {
		return nil, named(path, err)
	}
	c, err := src.config()
	c.Rope.setContext(c.Context)
	l := &Loader{src: src, arch: c.Arch, dry: true}
	if err == nil {
		_, err = NewNetwork(c, l)
	}
	if err := errors.Join(err, src.Close()); err != nil {
		return nil, named(path, err)
	}
	return l.memory, nil
}

// count notes what a tensor takes.
func (l *Loader) count(t tensor.Tensor, as tensor.Type, bytes int) {
	m := TypeMemory{Type: t.Type, As: as, File: int64(t.Rows() * t.RowBytes())}
	if s, ok := l.src.(*hfSource); ok {
		m.Type, m.File = s.stored(t)
	}
	i := slices.IndexFunc(l.memory, func(k TypeMemory) bool { return k.Type == m.Type && k.As == as })
	if i < 0 {
		i = len(l.memory)
		l.memory = append(l.memory, TypeMemory{Type: m.Type, As: as})
	}
	sum := &l.memory[i]
	if l.counted == nil {
		l.counted = map[string]bool{}
	}
	if !l.counted[t.Name] { // not another matrix of a tensor of several
		l.counted[t.Name] = true
		sum.Tensors++
	}
	sum.File += m.File
	sum.Memory += int64(bytes)
}

// newMatrix makes room for a tensor's weights.
func (l *Loader) newMatrix(t tensor.Tensor, out, in int) (*gemm.Matrix, error) {
	to := ProductType(t.Type, in)
	if l.dry {
		l.count(t, FileType(to), gemm.PackedBytes(to, out, in))
		return &gemm.Matrix{}, nil
	}
	m, err := gemm.New(to, out, in)
	if err == nil {
		l.count(t, FileType(to), m.Bytes())
	}
	return m, err
}
