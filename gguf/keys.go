package gguf

import "iter"

// Meta ranges over the metadata, in the file's order.
func (f *File) Meta() iter.Seq2[string, Value] {
	return func(yield func(string, Value) bool) {
		for _, kv := range f.list {
			if !yield(kv.key, kv.value) {
				return
			}
		}
	}
}

// Lookup returns a metadata value.
func (f *File) Lookup(key string) (Value, bool) {
	i, ok := f.meta[key]
	if !ok {
		return Value{}, false
	}
	return f.list[i].value, true
}

// Get returns a metadata value as a T; see As. ok is false where the key is missing or its value is of another
// kind. To tell those two apart use Lookup.
func Get[T string | bool | int64 | uint64 | float64 | []string | []bool | []int64 | []float32 | []Value](
	f *File, key string) (x T, ok bool) {
	v, ok := f.Lookup(key)
	if !ok {
		return x, false
	}
	return As[T](v)
}

// As returns a value as a T, and whether it is one. An integer of any width converts to an int64, a uint64 or a
// float64 that holds it exactly, and the elements of an array of integers to int64. Arrays of f64 are narrowed to
// float32. Strings share the file's memory copy of the metadata. []Value takes the elements of any array, nested
// ones included. There is no []int64 of more than 2^22 bytes or 16-bit integers.
func As[T string | bool | int64 | uint64 | float64 | []string | []bool | []int64 | []float32 | []Value](
	v Value) (x T, ok bool) {
	if v.raw == "" {
		return x, false
	}
	switch p := any(&x).(type) {
	case *string:
		ok = v.typ == typeString
		if ok {
			*p = v.raw[8:]
		}
	case *bool:
		ok = v.typ == typeBool
		*p = ok && v.raw[0] != 0
	case *int64:
		*p, ok = scalarInt(v.typ, v.raw)
	case *uint64:
		*p, ok = v.uint()
	case *float64:
		*p, ok = scalarFloat(v.typ, v.raw)
	case *[]string:
		*p, ok = v.strings()
	case *[]bool:
		*p, ok = v.bools()
	case *[]int64:
		*p, ok = v.ints()
	case *[]float32:
		*p, ok = v.floats()
	case *[]Value:
		*p, ok = v.first(v.Len())
	}
	return x, ok
}
