package gguf

import (
	"fmt"
	"math"
	"strings"

	"github.com/grovellm/grove/internal/files/fileerr"
)

// valueType is the type of a metadata value, numbered as in the file.
type valueType uint32

// The types of metadata values.
const (
	typeUint8   valueType = 0
	typeInt8    valueType = 1
	typeUint16  valueType = 2
	typeInt16   valueType = 3
	typeUint32  valueType = 4
	typeInt32   valueType = 5
	typeFloat32 valueType = 6
	typeBool    valueType = 7
	typeString  valueType = 8
	typeArray   valueType = 9
	typeUint64  valueType = 10
	typeInt64   valueType = 11
	typeFloat64 valueType = 12
)

var valueTypes = [...]struct {
	name  string
	bytes int // the fixed size of a scalar; the least size of a string or an array
}{
	typeUint8: {"u8", 1}, typeInt8: {"i8", 1}, typeUint16: {"u16", 2}, typeInt16: {"i16", 2},
	typeUint32: {"u32", 4}, typeInt32: {"i32", 4}, typeUint64: {"u64", 8}, typeInt64: {"i64", 8},
	typeFloat32: {"f32", 4}, typeFloat64: {"f64", 8}, typeBool: {"bool", 1}, typeString: {"str", 8}, typeArray: {"arr", 12},
}

func (t valueType) known() bool { return t < valueType(len(valueTypes)) }

// String is the type's short name: u8, i32, f32, bool, str, arr and so on.
func (t valueType) String() string {
	if t.known() {
		return valueTypes[t].name
	}
	return fmt.Sprintf("value type %d", uint32(t))
}

// keyValue is one metadata entry.
type keyValue struct {
	key   string
	value Value
}

// Value is a metadata value: its type and its bytes as the file has them, checked. As decodes on
// demand, so that a vocabulary of 150k strings costs nothing until it is used, and a value copied
// from one file to another stays identical. Values can be compared with ==.
type Value struct {
	typ valueType
	raw string // for an array: element type (4 bytes), count (8), elements
}

// Type names the value's type: u8 to u64, i8 to i64, f32, f64, bool, str; [] and the type of its elements for an array.
func (v Value) Type() string {
	if v.typ != typeArray || v.raw == "" {
		return v.typ.String()
	}
	elem := v.elem()
	if elem != typeArray || v.Len() == 0 {
		return "[]" + elem.String()
	}
	first, _ := v.first(1)
	return "[]" + first[0].Type()
}

// elem is the type of an array's elements, and the type itself of anything else.
func (v Value) elem() valueType {
	if v.typ != typeArray || v.raw == "" {
		return v.typ
	}
	return valueType(le32(v.raw))
}

// Len is the number of an array's elements, 1 for anything else.
func (v Value) Len() int {
	if v.typ != typeArray || v.raw == "" {
		return 1
	}
	return int(le64(v.raw[4:]))
}

func le32(s string) uint32 {
	return uint32(s[0]) | uint32(s[1])<<8 | uint32(s[2])<<16 | uint32(s[3])<<24
}

func le64(s string) uint64 { return uint64(le32(s)) | uint64(le32(s[4:]))<<32 }

// uint returns an integer of any width that is not negative.
func (v Value) uint() (uint64, bool) {
	if v.typ == typeUint64 {
		return le64(v.raw), true
	}
	n, ok := As[int64](v)
	return uint64(n), ok && n >= 0
}

// scalarInt returns an integer of any width that an int64 can hold.
func scalarInt(t valueType, raw string) (int64, bool) {
	switch t {
	case typeUint8:
		return int64(raw[0]), true
	case typeInt8:
		return int64(int8(raw[0])), true
	case typeUint16:
		return int64(uint16(raw[0]) | uint16(raw[1])<<8), true
	case typeInt16:
		return int64(int16(uint16(raw[0]) | uint16(raw[1])<<8)), true
	case typeUint32:
		return int64(le32(raw)), true
	case typeInt32:
		return int64(int32(le32(raw))), true
	case typeInt64:
		return int64(le64(raw)), true
	case typeUint64:
		n := le64(raw)
		return int64(n), n <= math.MaxInt64
	}
	return 0, false
}

// scalarFloat returns a floating-point value, or an integer that a float64 holds exactly.
func scalarFloat(t valueType, raw string) (float64, bool) {
	switch t {
	case typeFloat32:
		return float64(math.Float32frombits(le32(raw))), true
	case typeFloat64:
		return math.Float64frombits(le64(raw)), true
	}
	n, ok := scalarInt(t, raw)
	f := float64(n)
	return f, ok && n >= -1<<53 && n <= 1<<53
}

// elements calls f for each element of a flat array of scalars; it reports false for any other value or when f does.
func (v Value) elements(f func(t valueType, i int, raw string) bool) bool {
	if v.typ != typeArray || v.raw == "" {
		return false
	}
	t := v.elem()
	n := v.Len()
	raw := v.raw[12:]
	if t == typeString || t == typeArray {
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

// strings returns an array of strings. They share the file's memory copy of the metadata: no string is copied.
func (v Value) strings() ([]string, bool) {
	if v.elem() != typeString || v.typ != typeArray {
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

// ints returns an array of integers that int64 can hold. It takes no array of more than 2^22 bytes or
// 16-bit integers.
func (v Value) ints() ([]int64, bool) {
	if !v.arrayOf(func(t valueType) bool { return t <= typeInt32 || t == typeUint64 || t == typeInt64 }) ||
		v.Len() > maxNarrow && valueTypes[v.elem()].bytes < 4 {
		return nil, false
	}
	out := make([]int64, v.Len())
	ok := v.elements(func(t valueType, i int, raw string) (ok bool) {
		out[i], ok = scalarInt(t, raw)
		return ok
	})
	return out, ok
}

// floats returns an array of f32, or of f64 narrowed.
func (v Value) floats() ([]float32, bool) {
	if !v.arrayOf(func(t valueType) bool { return t == typeFloat32 || t == typeFloat64 }) {
		return nil, false
	}
	out := make([]float32, v.Len())
	ok := v.elements(func(t valueType, i int, raw string) bool {
		f, ok := scalarFloat(t, raw)
		out[i] = float32(f)
		return ok
	})
	return out, ok
}

// bools returns an array of truth values.
func (v Value) bools() ([]bool, bool) {
	if !v.arrayOf(func(t valueType) bool { return t == typeBool }) {
		return nil, false
	}
	out := make([]bool, v.Len())
	ok := v.elements(func(_ valueType, i int, raw string) bool {
		out[i] = raw[0] != 0
		return true
	})
	return out, ok
}

// first returns the first n elements of an array, or all if it has fewer.
func (v Value) first(n int) ([]Value, bool) {
	if v.typ != typeArray || v.raw == "" {
		return nil, false
	}
	t, raw := v.elem(), v.raw[12:]
	out := make([]Value, min(n, v.Len()))
	for i := range out {
		end, _ := valueEnd(raw, t, 0) // checked when the value was made
		out[i], raw = Value{t, raw[:end]}, raw[end:]
	}
	return out, true
}

func (v Value) arrayOf(want func(valueType) bool) bool {
	return v.typ == typeArray && v.raw != "" && want(v.elem())
}

// String formats the value for display, with long arrays and strings shortened.
func (v Value) String() string {
	const few = 6
	if v.raw == "" {
		return "no value"
	}
	switch v.typ {
	case typeString:
		s, _ := As[string](v)
		return fileerr.Quote(s)
	case typeBool:
		b, _ := As[bool](v)
		return fmt.Sprint(b)
	case typeUint64:
		n, _ := As[uint64](v)
		return fmt.Sprint(n)
	case typeFloat32:
		f, _ := As[float64](v)
		return fmt.Sprint(float32(f))
	case typeFloat64:
		f, _ := As[float64](v)
		return fmt.Sprint(f)
	case typeArray:
		var b strings.Builder
		b.WriteByte('[')
		raw := v.raw[12:]
		t := v.elem()
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
	n, _ := As[int64](v)
	return fmt.Sprint(n)
}
