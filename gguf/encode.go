package gguf

import (
	"encoding/binary"
	"fmt"
	"math"
)

// ValueOf makes a value of a Go scalar of fixed size, a string, a slice of those, or a []Value of one type (which may
// be arrays). A plain int is refused, as its width in the file would be a guess.
func ValueOf(x any) (Value, error) {
	switch x := x.(type) {
	case Value:
		if x.raw == "" {
			return Value{}, fmt.Errorf("an empty Value: make one with ValueOf")
		}
		return x, nil
	case uint8:
		return Value{Uint8, string([]byte{x})}, nil
	case int8:
		return Value{Int8, string([]byte{byte(x)})}, nil
	case uint16:
		return scalar(Uint16, uint64(x)), nil
	case int16:
		return scalar(Int16, uint64(x)), nil
	case uint32:
		return scalar(Uint32, uint64(x)), nil
	case int32:
		return scalar(Int32, uint64(x)), nil
	case uint64:
		return scalar(Uint64, x), nil
	case int64:
		return scalar(Int64, uint64(x)), nil
	case float32:
		return scalar(Float32, uint64(math.Float32bits(x))), nil
	case float64:
		return scalar(Float64, math.Float64bits(x)), nil
	case bool:
		return scalar(Bool, b2u(x)), nil
	case string:
		return Value{String, string(appendString(nil, x))}, nil
	case []uint8:
		return Value{Array, string(append(arrayHead(Uint8, len(x)), x...))}, nil
	case []int8:
		return numbers(Int8, x, func(e int8) uint64 { return uint64(e) }), nil
	case []uint16:
		return numbers(Uint16, x, func(e uint16) uint64 { return uint64(e) }), nil
	case []int16:
		return numbers(Int16, x, func(e int16) uint64 { return uint64(e) }), nil
	case []uint32:
		return numbers(Uint32, x, func(e uint32) uint64 { return uint64(e) }), nil
	case []int32:
		return numbers(Int32, x, func(e int32) uint64 { return uint64(e) }), nil
	case []uint64:
		return numbers(Uint64, x, func(e uint64) uint64 { return e }), nil
	case []int64:
		return numbers(Int64, x, func(e int64) uint64 { return uint64(e) }), nil
	case []float32:
		return numbers(Float32, x, func(e float32) uint64 { return uint64(math.Float32bits(e)) }), nil
	case []float64:
		return numbers(Float64, x, math.Float64bits), nil
	case []bool:
		return numbers(Bool, x, b2u), nil
	case []string:
		b := arrayHead(String, len(x))
		for _, s := range x {
			b = appendString(b, s)
		}
		return Value{Array, string(b)}, nil
	case []Value:
		return nested(x)
	}
	return Value{}, fmt.Errorf("a %T has no GGUF type: use a number type with a size (uint32, float32 …), string, bool, or a slice of those", x)
}

func nested(x []Value) (Value, error) {
	if len(x) == 0 {
		return Value{}, fmt.Errorf("an empty []Value has no element type: use an empty slice of the type meant")
	}
	b := arrayHead(x[0].typ, len(x))
	for i, e := range x {
		if e.typ != x[0].typ || e.raw == "" {
			return Value{}, fmt.Errorf("element %d of an array is %v, element 0 is %v: one type for all", i, e.typ, x[0].typ)
		}
		b = append(b, e.raw...)
	}
	if _, err := valueEnd(b, Array, 0); err != nil {
		return Value{}, err // nested too deep
	}
	return Value{Array, string(b)}, nil
}

func b2u(b bool) uint64 {
	if b {
		return 1
	}
	return 0
}

func appendUint(b []byte, size int, x uint64) []byte {
	for range size {
		b = append(b, byte(x))
		x >>= 8
	}
	return b
}

func appendString(b []byte, s string) []byte {
	return append(binary.LittleEndian.AppendUint64(b, uint64(len(s))), s...)
}

func arrayHead(t ValueType, n int) []byte {
	return binary.LittleEndian.AppendUint64(binary.LittleEndian.AppendUint32(nil, uint32(t)), uint64(n))
}

func scalar(t ValueType, x uint64) Value {
	return Value{t, string(appendUint(nil, valueTypes[t].bytes, x))}
}

func numbers[E any](t ValueType, x []E, bits func(E) uint64) Value {
	b := arrayHead(t, len(x))
	for _, e := range x {
		b = appendUint(b, valueTypes[t].bytes, bits(e))
	}
	return Value{Array, string(b)}
}
