package gguf

import (
	"fmt"
	"math"

	"github.com/grovellm/grove/tensor"
)

// Lookup returns a metadata value.
func (f *File) Lookup(key string) (Value, bool) {
	i, ok := f.meta[key]
	if !ok {
		return Value{}, false
	}
	return f.Meta[i].Value, true
}

func get[T any](f *File, key string, as func(Value) (T, bool)) (T, bool) {
	v, ok := f.Lookup(key)
	if !ok {
		var zero T
		return zero, false
	}
	return as(v)
}

// The getters below return ok false where the key is missing or its value is of another kind. To tell
// those two apart, as a program reading a model's configuration must, use Keys.

// String returns a string.
func (f *File) String(key string) (string, bool) { return get(f, key, Value.Str) }

// Uint returns an integer of any width that is not negative.
func (f *File) Uint(key string) (uint64, bool) { return get(f, key, Value.Uint) }

// Int returns an integer of any width.
func (f *File) Int(key string) (int64, bool) { return get(f, key, Value.Int) }

// Float returns a number.
func (f *File) Float(key string) (float64, bool) { return get(f, key, Value.Float) }

// Bool returns a truth value.
func (f *File) Bool(key string) (b, ok bool) { return get(f, key, Value.Bool) }

// Strings returns an array of strings.
func (f *File) Strings(key string) ([]string, bool) { return get(f, key, Value.Strings) }

// Floats returns an array of floating-point numbers.
func (f *File) Floats(key string) ([]float32, bool) { return get(f, key, Value.Floats) }

// Ints returns an array of integers of any width.
func (f *File) Ints(key string) ([]int64, bool) { return get(f, key, Value.Ints) }

// Bools returns an array of truth values.
func (f *File) Bools(key string) ([]bool, bool) { return get(f, key, Value.Bools) }

// Keys reads a series of keys and keeps the first error, so that a configuration is read line by line and checked once:
//
//	k := f.Keys()
//	c.Hidden = k.Int("qwen3.embedding_length")
//	c.Base = k.Float("qwen3.rope.freq_base", 10000) // the default where the key is missing
//	if err := k.Err(); err != nil { … }
//
// A key of the wrong kind is an error even where there is a default.
type Keys struct {
	f   *File
	err error
}

// Keys starts such a series.
func (f *File) Keys() *Keys { return &Keys{f: f} }

// Err returns the first error, naming file and key.
func (k *Keys) Err() error { return k.err }

// Has reports whether the key is there.
func (k *Keys) Has(key string) bool { _, ok := k.f.Lookup(key); return ok }

// Int returns an integer from 0 to 2^31−1.
func (k *Keys) Int(key string, def ...int) int {
	return read(k, key, "an integer from 0 to 2147483647", def, func(v Value) (int, bool) {
		n, ok := v.Uint()
		return int(n), ok && n <= math.MaxInt32
	})
}

// Float returns a finite number.
func (k *Keys) Float(key string, def ...float64) float64 {
	return read(k, key, "a finite number", def, func(v Value) (float64, bool) {
		x, ok := v.Float()
		return x, ok && !math.IsInf(x, 0) && !math.IsNaN(x)
	})
}

// String returns a string.
func (k *Keys) String(key string, def ...string) string {
	return read(k, key, "a string", def, Value.Str)
}

// Bool returns a truth value.
func (k *Keys) Bool(key string, def ...bool) bool { return read(k, key, "a bool", def, Value.Bool) }

// Strings returns an array of strings.
func (k *Keys) Strings(key string, def ...[]string) []string {
	return read(k, key, "an array of strings", def, Value.Strings)
}

// Ints returns an array of integers.
func (k *Keys) Ints(key string, def ...[]int64) []int64 {
	return read(k, key, "an array of integers", def, Value.Ints)
}

// Bools returns an array of truth values; ok is false where the value is no array.
func (k *Keys) Bools(key string) (list []bool, ok bool) { return k.f.Bools(key) }

// Floats returns an array of floating-point numbers.
func (k *Keys) Floats(key string, def ...[]float32) []float32 {
	return read(k, key, "an array of floating-point numbers", def, Value.Floats)
}

func read[T any](k *Keys, key, want string, def []T, as func(Value) (T, bool)) T {
	var zero T
	v, there := k.f.Lookup(key)
	if !there {
		if len(def) > 0 {
			return def[0]
		}
		k.fail(key, fmt.Errorf("is missing"), "convert the file again with a converter that knows its architecture")
		return zero
	}
	x, ok := as(v)
	if !ok {
		k.fail(key, fmt.Errorf("is %v (%v), want %s", v, v.Type(), want), remedyWrong)
		return zero
	}
	return x
}

func (k *Keys) fail(key string, err error, remedy string) {
	if k.err == nil {
		k.err = k.f.fault(0, &fault{"key " + tensor.Quote(key), remedy, err})
	}
}
