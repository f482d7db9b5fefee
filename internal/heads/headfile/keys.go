package headfile

import (
	"fmt"
	"math"

	"github.com/grovellm/grove/gguf"
	"github.com/grovellm/grove/internal/files/ggufkeys"
	"github.com/grovellm/grove/internal/model"
	"github.com/grovellm/grove/tensor"
)

// Keys goes through the keys of a head's GGUF file. A shape names each of them once, with the
// number that it is of; Keys lists the names, reads the numbers or writes them. A name that begins
// with a dot comes after the architecture.
type Keys struct {
	Arch string

	names []string
	from  *ggufkeys.Keys
	into  *gguf.Writer
	err   error
}

// Reading reports whether the numbers come from a file.
func (k *Keys) Reading() bool { return k.from != nil }

// Fail makes err the error of the file, unless there is one already.
func (k *Keys) Fail(err error) {
	if k.err == nil {
		k.err = err
	}
}

// key is the whole name.
func (k *Keys) key(name string) string {
	k.names = append(k.names, name)
	if name[0] == '.' {
		return k.Arch + name
	}
	return name
}

// Int is an integer; def is its value where the key is missing, and without one the key must be there.
func (k *Keys) Int(name string, v *int, def ...int) {
	key := k.key(name)
	switch {
	case k.from != nil:
		*v = k.from.Int(key, def...)
	case k.into != nil:
		k.into.Set(key, uint32(*v))
	}
}

// String is a text, empty where the key is missing; an empty one is not written.
func (k *Keys) String(name string, v *string) {
	key := k.key(name)
	switch {
	case k.from != nil:
		*v = k.from.String(key, "")
	case k.into != nil && *v != "":
		k.into.Set(key, *v)
	}
}

// Bool is a truth value; def is that where the key is missing.
func (k *Keys) Bool(name string, v *bool, def bool) {
	key := k.key(name)
	switch {
	case k.from != nil:
		*v = k.from.Bool(key, def)
	case k.into != nil:
		k.into.Set(key, *v)
	}
}

// Flag is a truth value that is false where the key is missing, and is written where it is true, or always.
func (k *Keys) Flag(name string, v *bool, always bool) {
	if k.into == nil || *v || always {
		k.Bool(name, v, false)
	}
}

// Floats is a list of numbers; where the key is missing it stays as it is.
func (k *Keys) Floats(name string, v *[]float32) {
	key := k.key(name)
	switch {
	case k.from != nil:
		*v = k.from.Floats(key, *v)
	case k.into != nil:
		k.into.Set(key, *v)
	}
}

// Ints is a list of integers; where the key is missing it stays as it is, and an empty one is not written.
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

// Windows is the sliding window of a head's layers, and which of them have it, as llama.cpp has both.
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
			k.Fail(fmt.Errorf("key %q lists %d layers: want which of %d have the window", pattern, len(c.Windowed), c.Layers))
		}
	}
}

// textWeights is the key of the weights of +text, which is grove's own.
const textWeights = "grove.text.weights"

// all goes through the keys of a shape and those that every kind has.
func (k *Keys) all(s Shape) {
	s.Keys(k)
	if id := s.Common().TargetWeights; id != nil {
		k.String(model.TargetWeightsKey, id)
	}
	if w := s.Common().TextWeights; w != nil && (k.into == nil || len(*w) > 0) {
		k.Floats(textWeights, w)
	}
}

// Taps is the tapped layers, and how many the target has that the head was made for.
func (k *Keys) Taps(c Common) {
	switch {
	case k.from != nil:
		var err error
		if *c.Taps, *c.TargetLayers, err = readTaps(k.from, k.Arch); err != nil {
			k.Fail(err)
		}
	case k.into != nil:
		SetTaps(k.into, k.Arch, *c.Taps, *c.TargetLayers)
	}
}

// Keys of the target's widths, after the architecture, which alone a kind that is Bare has.
const (
	vocabKey  = ".vocab_size"
	hiddenKey = ".embedding_length"
)

// SetGGUF sets the keys of a head's file, all but the tokenizer's, after which it comes.
func SetGGUF(w *gguf.Writer, s Shape, name string, typ tensor.Type) {
	c := s.Common().Layers
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

// WriteTextWeights writes the GGUF file of a head anew, with other weights of +text.
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
