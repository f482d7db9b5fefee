package headfile

import (
	"fmt"
	"math"

	"github.com/grovellm/grove/gguf"
	"github.com/grovellm/grove/internal/files/ggufkeys"
	"github.com/grovellm/grove/internal/model"
	"github.com/grovellm/grove/tensor"
)

// Keys visits the keys of a head's GGUF file. A shape names each key once, together with the number
// that it holds; Keys collects the names, or reads or writes the numbers. A name that begins with a
// dot follows the architecture.
type Keys struct {
	Arch string

	names []string
	from  *ggufkeys.Keys
	into  *gguf.Writer
	err   error
}

// Reading reports whether the numbers come from a file.
func (k *Keys) Reading() bool { return k.from != nil }

// Fail makes err the error of the file, unless there already is one.
func (k *Keys) Fail(err error) {
	if k.err == nil {
		k.err = err
	}
}

// key returns the whole name.
func (k *Keys) key(name string) string {
	k.names = append(k.names, name)
	if name[0] == '.' {
		return k.Arch + name
	}
	return name
}

// Int is an integer. def is its value if the key is missing; without def the key is required.
func (k *Keys) Int(name string, v *int, def ...int) {
	key := k.key(name)
	switch {
	case k.from != nil:
		*v = k.from.Int(key, def...)
	case k.into != nil:
		k.into.Set(key, uint32(*v))
	}
}

// String is a text, empty if the key is missing. An empty one is not written.
func (k *Keys) String(name string, v *string) {
	key := k.key(name)
	switch {
	case k.from != nil:
		*v = k.from.String(key, "")
	case k.into != nil && *v != "":
		k.into.Set(key, *v)
	}
}

// Bool is a truth value. def is its value if the key is missing.
func (k *Keys) Bool(name string, v *bool, def bool) {
	key := k.key(name)
	switch {
	case k.from != nil:
		*v = k.from.Bool(key, def)
	case k.into != nil:
		k.into.Set(key, *v)
	}
}

// Flag is a truth value that is false if the key is missing. It is written only if it is true, or always is set.
func (k *Keys) Flag(name string, v *bool, always bool) {
	if k.into == nil || *v || always {
		k.Bool(name, v, false)
	}
}

// Floats is a list of numbers. It keeps its value if the key is missing.
func (k *Keys) Floats(name string, v *[]float32) {
	key := k.key(name)
	switch {
	case k.from != nil:
		*v = k.from.Floats(key, *v)
	case k.into != nil:
		k.into.Set(key, *v)
	}
}

// Ints is a list of integers. It keeps its value if the key is missing; an empty list is not written.
func (k *Keys) Ints(name string, v *[]int32) {
	key := k.key(name)
	switch {
	case k.from != nil:
		for _, n := range k.from.Ints(key, nil) {
			*v = append(*v, int32(min(max(n, math.MinInt32), math.MaxInt32)))
		}
	case k.into != nil && len(*v) > 0:
		k.into.Set(key, *v)
	}
}

// Windows is the sliding window of a head's layers and which of them have it, stored as llama.cpp stores both.
func (k *Keys) Windows(c *model.Config) {
	window, pattern := k.key(".attention.sliding_window"), k.key(".attention.sliding_window_pattern")
	switch {
	case k.into != nil && c.Window > 0:
		k.into.Set(window, uint32(c.Window))
		k.into.Set(pattern, c.Windowed)
	case k.from != nil && k.from.Int(window, 0) > 0:
		c.Window = k.from.Int(window)
		c.Windowed, _ = k.from.Bools(pattern)
		if len(c.Windowed) != c.Layers {
			k.Fail(fmt.Errorf("key %q has %d entries: want one for each of the %d layers", pattern, len(c.Windowed), c.Layers))
		}
	}
}

// textWeights is the key of the weights of +text. It is grove's own.
const textWeights = "grove.text.weights"

// all visits the keys of a shape and those that every kind has.
func (k *Keys) all(s Shape) {
	s.Keys(k)
	c := s.Common()
	k.String(model.TargetWeightsKey, &c.TargetWeights)
	if k.into == nil || len(c.TextWeights) > 0 {
		k.Floats(textWeights, &c.TextWeights)
	}
}

// Taps is the tapped layers, and the number of layers of the target that the head was made for.
func (k *Keys) Taps(b *Base) {
	switch {
	case k.from != nil:
		var err error
		if b.Taps, b.TargetLayers, err = readTaps(k.from, k.Arch); err != nil {
			k.Fail(err)
		}
	case k.into != nil:
		SetTaps(k.into, k.Arch, b.Taps, b.TargetLayers)
	}
}

// Keys of the target's widths, after the architecture. A Bare kind has only these.
const (
	vocabKey  = ".vocab_size"
	hiddenKey = ".embedding_length"
)

// SetGGUF sets the keys of a head's file, except the tokenizer's, which must be set first.
func SetGGUF(w *gguf.Writer, s Shape, name string, typ tensor.Type) {
	c := s.Common()
	if s.Kind().Bare {
		w.Set("general.architecture", s.FileArch())
		w.Set("general.type", "model")
		w.Set("general.name", name)
		ggufkeys.SetFileType(w, typ)
		w.Set(s.FileArch()+vocabKey, uint32(c.Vocab))
		w.Set(s.FileArch()+hiddenKey, uint32(c.Hidden))
	} else {
		c.SetGGUF(w, s.FileArch(), name, typ)
	}
	k := Keys{Arch: s.FileArch(), into: w}
	k.all(s)
}

// WriteTextWeights rewrites the GGUF file of a head with other weights of +text.
func WriteTextWeights(from, to string, weights []float32) error {
	f, err := gguf.Open(from)
	if err != nil {
		return err
	}
	defer f.Close()
	w := new(gguf.Writer)
	ggufkeys.SetAll(w, f)
	w.Set(textWeights, weights)
	for _, t := range f.Tensors {
		x, _ := f.Tensor(t.Name) // of any type: lists of tokens are whole numbers
		w.AddTensor(x)
	}
	return w.WriteFile(to)
}
