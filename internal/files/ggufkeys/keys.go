// Package ggufkeys reads and writes the metadata of models in GGUF files: series of keys with one
// error, unknown keys, the tokenizer, the type of the weights.
package ggufkeys

import (
	"fmt"
	"math"

	"github.com/grovellm/grove/gguf"
	"github.com/grovellm/grove/internal/files/fileerr"
)

// Keys reads a series of keys and keeps the first error, so that a configuration is read line by line and checked once:
//
//	k := ggufkeys.Of(f)
//	c.Hidden = k.Int("qwen3.embedding_length")
//	c.Base = k.Float("qwen3.rope.freq_base", 10000) // the default where the key is missing
//	if err := k.Err(); err != nil { … }
//
// A key of the wrong kind is an error even if there is a default.
type Keys struct {
	f   *gguf.File
	err error
}

// Of starts such a series.
func Of(f *gguf.File) *Keys { return &Keys{f: f} }

// Err returns the first error, naming file and key.
func (k *Keys) Err() error { return k.err }

// Has reports whether the key exists.
func (k *Keys) Has(key string) bool { _, ok := k.f.Lookup(key); return ok }

// Int returns an integer from 0 to 2^31−1.
func (k *Keys) Int(key string, def ...int) int {
	return read(k, key, "an integer from 0 to 2147483647", def, func(v gguf.Value) (int, bool) {
		n, ok := gguf.As[uint64](v)
		return int(n), ok && n <= math.MaxInt32
	})
}

// Float returns a finite number.
func (k *Keys) Float(key string, def ...float64) float64 {
	return read(k, key, "a finite number", def, func(v gguf.Value) (float64, bool) {
		x, ok := gguf.As[float64](v)
		return x, ok && !math.IsInf(x, 0) && !math.IsNaN(x)
	})
}

// String returns a string.
func (k *Keys) String(key string, def ...string) string {
	return read(k, key, "a string", def, gguf.As[string])
}

// Bool returns a boolean.
func (k *Keys) Bool(key string, def ...bool) bool {
	return read(k, key, "a bool", def, gguf.As[bool])
}

// Strings returns an array of strings.
func (k *Keys) Strings(key string, def ...[]string) []string {
	return read(k, key, "an array of strings", def, gguf.As[[]string])
}

// Ints returns an array of integers.
func (k *Keys) Ints(key string, def ...[]int64) []int64 {
	return read(k, key, "an array of integers", def, gguf.As[[]int64])
}

// Bools returns an array of booleans; ok is false if the value is not an array.
func (k *Keys) Bools(key string) (list []bool, ok bool) {
	v, _ := k.f.Lookup(key)
	return gguf.As[[]bool](v)
}

// IntList returns an array of integers; ok is false if the value is not an array.
func (k *Keys) IntList(key string) (list []int64, ok bool) {
	v, _ := k.f.Lookup(key)
	return gguf.As[[]int64](v)
}

// Floats returns an array of floating-point numbers.
func (k *Keys) Floats(key string, def ...[]float32) []float32 {
	return read(k, key, "an array of floating-point numbers", def, gguf.As[[]float32])
}

func read[T any](k *Keys, key, want string, def []T, as func(gguf.Value) (T, bool)) T {
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
		k.err = fault(k.f, "key "+fileerr.Quote(key), remedy, err)
	}
}

const remedyWrong = "the file is damaged or was written wrongly: fetch or convert it again"

func fault(f *gguf.File, field, remedy string, err error) error {
	return &fileerr.Error{Format: "gguf", File: f.Path, Field: field, Err: err, Remedy: remedy}
}
