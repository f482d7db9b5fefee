package gguf

import (
	"encoding/binary"
	"fmt"
	"math"
)

// valueOf makes a value of a Go scalar of fixed size, a string, a slice of those, or a []Value of one type (which may
// be arrays). A plain int is refused, as its width in the file would be a guess.
func valueOf(x any) (Value, error) {
	switch x := x.(type) {
	case Value:
		if x.raw == "" {
			return Value{}, fmt.Errorf("an empty Value: take one from a file")
		}
		return x, nil
	case uint8:
		return Value{typeUint8, string([]byte{x})}, nil
	case int8:
		return Value{typeInt8, string([]byte{byte(x)})}, nil
	case uint16:
		return scalar(typeUint16, uint64(x)), nil
	case int16:
		return scalar(typeInt16, uint64(x)), nil
	case uint32:
		return scalar(typeUint32, uint64(x)), nil
	case int32:
		return scalar(typeInt32, uint64(x)), nil
	case uint64:
		return scalar(typeUint64, x), nil
	case int64:
		return scalar(typeInt64, uint64(x)), nil
	case float32:
		return scalar(typeFloat32, uint64(math.Float32bits(x))), nil
	case float64:
		return scalar(typeFloat64, math.Float64bits(x)), nil
	case bool:
		return scalar(typeBool, b2u(x)), nil
	case string:
		return Value{typeString, string(appendString(nil, x))}, nil
	case []uint8:
		return Value{typeArray, string(append(arrayHead(typeUint8, len(x)), x...))}, nil
	case []int8:
		return numbers(typeInt8, x, func(e int8) uint64 { return uint64(e) }), nil
	case []uint16:
		return numbers(typeUint16, x, func(e uint16) uint64 { return uint64(e) }), nil
	case []int16:
		return numbers(typeInt16, x, func(e int16) uint64 { return uint64(e) }), nil
	case []uint32:
		return numbers(typeUint32, x, func(e uint32) uint64 { return uint64(e) }), nil
	case []int32:
		return numbers(typeInt32, x, func(e int32) uint64 { return uint64(e) }), nil
	case []uint64:
		return numbers(typeUint64, x, func(e uint64) uint64 { return e }), nil
	case []int64:
		return numbers(typeInt64, x, func(e int64) uint64 { return uint64(e) }), nil
	case []float32:
		return numbers(typeFloat32, x, func(e float32) uint64 { return uint64(math.Float32bits(e)) }), nil
	case []float64:
		return numbers(typeFloat64, x, math.Float64bits), nil
	case []bool:
		return numbers(typeBool, x, b2u), nil
	case []string:
		b := arrayHead(typeString, len(x))
		for _, s := range x {
			b = appendString(b, s)
		}
		return Value{typeArray, string(b)}, nil
	case []Value:
		return nested(x)
	}
	return Value{}, fmt.Errorf("a %T has no GGUF type: use a number type with a size (uint32, float32 …), string, bool, or a slice of those", x)
}

func nested(x []Value) (Value, error) {
	if len(x) == 0 {
		return Value{}, fmt.Errorf("an empty []Value has no element type: use an empty slice of the type you mean")
	}
	b := arrayHead(x[0].typ, len(x))
	for i, e := range x {
		if e.typ != x[0].typ || e.raw == "" {
			return Value{}, fmt.Errorf("element %d of an array is %v, element 0 is %v: one type for all", i, e.typ, x[0].typ)
		}
		b = append(b, e.raw...)
	}
	if _, err := valueEnd(b, typeArray, 0); err != nil {
		return Value{}, err // nested too deep
	}
	return Value{typeArray, string(b)}, nil
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

func arrayHead(t valueType, n int) []byte {
	return binary.LittleEndian.AppendUint64(binary.LittleEndian.AppendUint32(nil, uint32(t)), uint64(n))
}

func scalar(t valueType, x uint64) Value {
	return Value{t, string(appendUint(nil, valueTypes[t].bytes, x))}
}

func numbers[E any](t valueType, x []E, bits func(E) uint64) Value {
	b := arrayHead(t, len(x))
	for _, e := range x {
		b = appendUint(b, valueTypes[t].bytes, bits(e))
	}
	return Value{typeArray, string(b)}
}
