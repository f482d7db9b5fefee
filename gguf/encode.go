package gguf

import (
	"encoding/binary"
	"fmt"
	"reflect"
)

// numberTypes are the types of values by the kinds of Go's numbers.
var numberTypes = map[reflect.Kind]valueType{
	reflect.Uint8: typeUint8, reflect.Uint16: typeUint16, reflect.Uint32: typeUint32, reflect.Uint64: typeUint64,
	reflect.Int8: typeInt8, reflect.Int16: typeInt16, reflect.Int32: typeInt32, reflect.Int64: typeInt64,
	reflect.Float32: typeFloat32, reflect.Float64: typeFloat64, reflect.Bool: typeBool,
}

// valueOf makes a value of a Go scalar of fixed size, a string, a slice of those, or a []Value of one type (which may
// be arrays). A plain int is refused, as its width in the file would be a guess.
func valueOf(x any) (Value, error) {
	switch x := x.(type) {
	case Value:
		if x.raw == "" {
			return Value{}, fmt.Errorf("an empty Value: take one from a file")
		}
		return x, nil
	case string:
		return Value{typeString, string(appendString(nil, x))}, nil
	case []string:
		b := arrayHead(typeString, len(x))
		for _, s := range x {
			b = appendString(b, s)
		}
		return Value{typeArray, string(b)}, nil
	case []Value:
		return nested(x)
	case nil:
		return Value{}, errType(x)
	}
	t := reflect.TypeOf(x)
	typ, scalar := numberTypes[t.Kind()]
	if scalar && t.PkgPath() == "" {
		b, err := binary.Append(nil, binary.LittleEndian, x)
		return Value{typ, string(b)}, err
	}
	if t.Kind() != reflect.Slice || t.PkgPath()+t.Elem().PkgPath() != "" {
		return Value{}, errType(x)
	}
	typ, scalar = numberTypes[t.Elem().Kind()]
	if !scalar {
		return Value{}, errType(x)
	}
	b, err := binary.Append(arrayHead(typ, reflect.ValueOf(x).Len()), binary.LittleEndian, x)
	return Value{typeArray, string(b)}, err
}

func errType(x any) error {
	return fmt.Errorf("a %T has no GGUF type: use a number type with a size (uint32, float32 …), string, bool, or a slice of those", x)
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

func appendString(b []byte, s string) []byte {
	return append(binary.LittleEndian.AppendUint64(b, uint64(len(s))), s...)
}

func arrayHead(t valueType, n int) []byte {
	return binary.LittleEndian.AppendUint64(binary.LittleEndian.AppendUint32(nil, uint32(t)), uint64(n))
}
