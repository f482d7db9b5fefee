package gguf

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
// those two apart use Lookup.

// String returns a string.
func (f *File) String(key string) (string, bool) { return get(f, key, Value.Str) }

// Uint returns an integer of any width that is not negative.
func (f *File) Uint(key string) (uint64, bool) { return get(f, key, Value.Uint) }

// Strings returns an array of strings.
func (f *File) Strings(key string) ([]string, bool) { return get(f, key, Value.Strings) }
