package model

import (
	"errors"
	"slices"

	"github.com/grovellm/grove/internal/kernels/gemm"
	"github.com/grovellm/grove/tensor"
)

// TypeMemory is the size of the tensors of one type in a file, and in memory once the model is
// loaded.
type TypeMemory struct {
	Type    tensor.Type // in the file
	As      tensor.Type // in memory: the type in which they are multiplied or looked up
	Tensors int
	File    int64 // bytes in the file
	Memory  int64 // bytes in memory
}

// ReadMemory returns the memory that the weights of the model at path take once it is open, type by
// type in the order of the network. It reads only the descriptions of the tensors, unless a folder
// has an output matrix as well as a tied embedding, which opening compares.
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

// count records the memory of a tensor.
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
	if !l.counted[t.Name] { // not for a further matrix of the same tensor
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
