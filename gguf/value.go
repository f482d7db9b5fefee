package gguf

import (
	"fmt"
	"math"
	"strings"

	"github.com/grovellm/grove/internal/files/fileerr"
)

// ValueType is the type of a metadata value, numbered as in the file.
type ValueType uint32

// The types of metadata values.
const (
	Uint8   ValueType = 0
	Int8    ValueType = 1
	Uint16  ValueType = 2
	Int16   ValueType = 3
	Uint32  ValueType = 4
	Int32   ValueType = 5
	Float32 ValueType = 6
	Bool    ValueType = 7
	String  ValueType = 8
	Array   ValueType = 9
	Uint64  ValueType = 10
	Int64   ValueType = 11
	Float64 ValueType = 12
)

var valueTypes = [...]struct {
	name  string
	bytes int // the fixed size of a scalar; the least size of a string or an array
}{
	Uint8: {"u8", 1}, Int8: {"i8", 1}, Uint16: {"u16", 2}, Int16: {"i16", 2}, Uint32: {"u32", 4}, Int32: {"i32", 4},
	Float32: {"f32", 4}, Bool: {"bool", 1}, String: {"str", 8}, Array: {"arr", 12}, Uint64: {"u64", 8}, Int64: {"i64",
		8}, Float64: {"f64", 8},
}

func (t ValueType) known() bool { return int(t) < len(valueTypes) }

// String is the type's short name: u8, i32, f32, bool, str, arr and so on.
func (t ValueType) String() string {
	if t.known() {
		return valueTypes[t].name
	}
	return fmt.Sprintf("value type %d", uint32(t))
}

// KV is one metadata entry.
type KV struct {
	Key   string
	Value Value
}

// Value is a metadata value: its type and its bytes as the file has them, checked. Getters decode on
// demand, so that a vocabulary of 150k strings costs nothing until asked for, and a value copied
// from one file to another stays the same to the bit. Values can be compared with ==.
type Value struct {
	typ ValueType
	raw string // for an array: element type (4 bytes), count (8), elements
}

// Type is the value's type.
func (v Value) Type() ValueType { return v.typ }

// Elem is the type of an array's elements, and the type itself of anything else.
func (v Value) Elem() ValueType {
	if v.typ != Array || v.raw == "" {
		return v.typ
	}
	return ValueType(le32(v.raw))
}

// Len is the number of an array's elements, 1 for anything else.
func (v Value) Len() int {
	if v.typ != Array || v.raw == "" {
		return 1
	}
	return int(le64(v.raw[4:]))
}

func le32(s string) uint32 {
	return uint32(s[0]) | uint32(s[1])<<8 | uint32(s[2])<<16 | uint32(s[3])<<24
}

func le64(s string) uint64 { return uint64(le32(s)) | uint64(le32(s[4:]))<<32 }

// Str returns a string value.
func (v Value) Str() (string, bool) {
	if v.typ != String || v.raw == "" {
		return "", false
	}
	return v.raw[8:], true
}

// Bool returns a truth value.
func (v Value) Bool() (b, ok bool) {
	if v.typ != Bool || v.raw == "" {
		return false, false
	}
	return v.raw[0] != 0, true
}

// Int returns an integer of any width that an int64 can hold.
func (v Value) Int() (int64, bool) {
	if v.raw == "" {
		return 0, false
	}
	return scalarInt(v.typ, v.raw)
}

// Uint returns an integer of any width that is not negative.
func (v Value) Uint() (uint64, bool) {
	if v.typ == Uint64 && v.raw != "" {
		return le64(v.raw), true
	}
	n, ok := v.Int()
	return uint64(n), ok && n >= 0
}

// Float returns a floating-point value, or an integer that a float64 holds exactly.
func (v Value) Float() (float64, bool) {
	if v.raw == "" {
		return 0, false
	}
	return scalarFloat(v.typ, v.raw)
}

func scalarInt(t ValueType, raw string) (int64, bool) {
	switch t {
	case Uint8:
		return int64(raw[0]), true
	case Int8:
		return int64(int8(raw[0])), true
	case Uint16:
		return int64(uint16(raw[0]) | uint16(raw[1])<<8), true
	case Int16:
		return int64(int16(uint16(raw[0]) | uint16(raw[1])<<8)), true
	case Uint32:
		return int64(le32(raw)), true
	case Int32:
		return int64(int32(le32(raw))), true
	case Int64:
		return int64(le64(raw)), true
	case Uint64:
		n := le64(raw)
		return int64(n), n <= math.MaxInt64
	}
	return 0, false
}

func scalarFloat(t ValueType, raw string) (float64, bool) {
	switch t {
	case Float32:
		return float64(math.Float32frombits(le32(raw))), true
	case Float64:
		return math.Float64frombits(le64(raw)), true
	}
	n, ok := scalarInt(t, raw)
	f := float64(n)
	return f, ok && n >= -1<<53 && n <= 1<<53
}

// elements calls f for each element of a flat array of scalars; it reports false for any other value or when f does.
func (v Value) elements(f func(t ValueType, i int, raw string) bool) bool {
	if v.typ != Array || v.raw == "" {
		return false
	}
	t := v.Elem()
	n := v.Len()
	raw := v.raw[12:]
	if t == String || t == Array {
		return false
	}
	size := valueTypes[t].bytes
	for i := range n {
		if !f(t, i, raw[i*size:(i+1)*size]) {
			return false
		}
	}
	return true
}

// Strings returns an array of strings. They share the file's memory copy of the metadata: no string is copied.
func (v Value) Strings() ([]string, bool) {
	if v.Elem() != String || v.typ != Array {
		return nil, false
	}
	out := make([]string, v.Len())
	raw := v.raw[12:]
	for i := range out {
		end := 8 + int(le64(raw))
		out[i], raw = raw[8:end], raw[end:]
	}
	return out, true
}

// maxNarrow bounds the arrays of bytes or 16-bit integers that Ints widens, to 32 MB of memory: no
// model has longer ones that are read as numbers.
const maxNarrow = 1 << 22

// Ints returns an array of integers that int64 can hold. It takes no array of more than 2^22 bytes or
// 16-bit integers.
func (v Value) Ints() ([]int64, bool) {
	if !v.arrayOf(func(t ValueType) bool { return t <= Int32 || t == Uint64 || t == Int64 }) ||
		v.Len() > maxNarrow && valueTypes[v.Elem()].bytes < 4 {
		return nil, false
	}
	out := make([]int64, v.Len())
	ok := v.elements(func(t ValueType, i int, raw string) (ok bool) {
		out[i], ok = scalarInt(t, raw)
		return ok
	})
	return out, ok
}

// Floats returns an array of f32, or of f64 narrowed.
func (v Value) Floats() ([]float32, bool) {
	if !v.arrayOf(func(t ValueType) bool { return t == Float32 || t == Float64 }) {
		return nil, false
	}
	out := make([]float32, v.Len())
	ok := v.elements(func(t ValueType, i int, raw string) bool {
		f, ok := scalarFloat(t, raw)
		out[i] = float32(f)
		return ok
	})
	return out, ok
}

// Bools returns an array of truth values.
func (v Value) Bools() ([]bool, bool) {
	if !v.arrayOf(func(t ValueType) bool { return t == Bool }) {
		return nil, false
	}
	out := make([]bool, v.Len())
	ok := v.elements(func(_ ValueType, i int, raw string) bool {
		out[i] = raw[0] != 0
		return true
	})
	return out, ok
}

// Values returns the elements of any array, nested ones included.
func (v Value) Values() ([]Value, bool) { return v.First(v.Len()) }

// First returns the first n elements of an array, or all if it has fewer.
func (v Value) First(n int) ([]Value, bool) {
	if v.typ != Array || v.raw == "" {
		return nil, false
	}
	t, raw := v.Elem(), v.raw[12:]
	out := make([]Value, min(n, v.Len()))
	for i := range out {
		end, _ := valueEnd(raw, t, 0) // checked when the value was made
		out[i], raw = Value{t, raw[:end]}, raw[end:]
	}
	return out, true
}

func (v Value) arrayOf(want func(ValueType) bool) bool {
	return v.typ == Array && v.raw != "" && want(v.Elem())
}

// String prints the value for a person, long arrays and strings shortened.
func (v Value) String() string {
	const few = 6
	if v.raw == "" {
		return "no value"
	}
	switch v.typ {
	case String:
		s, _ := v.Str()
		return fileerr.Quote(s)
	case Bool:
		b, _ := v.Bool()
		return fmt.Sprint(b)
	case Uint64:
		n, _ := v.Uint()
		return fmt.Sprint(n)
	case Float32:
		f, _ := v.Float()
		return fmt.Sprint(float32(f))
	case Float64:
		f, _ := v.Float()
		return fmt.Sprint(f)
	case Array:
		var b strings.Builder
		b.WriteByte('[')
		raw := v.raw[12:]
		t := v.Elem()
		n := v.Len()
		for i := range min(n, few) {
			if i > 0 {
				b.WriteByte(' ')
			}
			end, _ := valueEnd(raw, t, 0)
			b.WriteString(Value{t, raw[:end]}.String())
			raw = raw[end:]
		}
		if n > few {
			fmt.Fprintf(&b, " … %d in all", n)
		}
		return b.String() + "]"
	}
	n, _ := v.Int()
	return fmt.Sprint(n)
}
