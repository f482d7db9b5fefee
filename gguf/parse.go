// Parsing a header: metadata and the descriptions of tensors. Faults name the field and what to do about it.

package gguf

import (
	"errors"
	"fmt"
	"math"

	"github.com/grovellm/grove/internal/files/fileerr"
	"github.com/grovellm/grove/internal/files/numtype"
	"github.com/grovellm/grove/tensor"
)

const (
	magic            = "GGUF"
	version          = 3
	defaultAlignment = 32
	alignmentKey     = "general.alignment"

	maxAlignment = 1 << 20

	maxDims  = 4 // ggml's limit
	maxDepth = 8 // of arrays in arrays: no known file has more than 1

	maxCount = 1 << 16 // of keys and of tensors: thirty times what the largest models have; each takes 400 bytes of memory

	// The least bytes an entry can take bound its count by the file's size, before anything is allocated for it.
	minKV     = 8 + 1 + 4 + 1     // key length, key, type, value
	minTensor = 8 + 1 + 4 + 4 + 8 // name length, name, number of dimensions, type, offset
)

// header is a parsed file without its tensor data. All its strings share one copy of the header's bytes.
type header struct {
	version   uint32
	meta      []keyValue
	tensors   []Info // Offset counts from the start of the file
	alignment uint64
}

// fault is a parse error before the file's name is known.
type fault struct {
	field, remedy string
	err           error
}

func (f *fault) Error() string { return f.field + ": " + f.err.Error() }

func fail(field, remedy, format string, args ...any) *fault {
	return &fault{field, remedy, fmt.Errorf(format, args...)}
}

const (
	remedyCut   = "the file is cut short or damaged: fetch or convert it again"
	remedyWrong = "the file is damaged or was written wrongly: fetch or convert it again"
)

// parse reads everything but the tensors' data.
func (c *cursor) parse() (*header, error) {
	h, err := c.header()
	if c.failed != nil {
		return nil, c.failed
	}
	return h, err
}

func (c *cursor) header() (*header, error) {
	h := &header{}
	nTensors, nKV, err := h.readCounts(c)
	if err != nil {
		return nil, err
	}

	type rawKV struct {
		key, value span
		typ        valueType
	}
	var kvs []rawKV // grown by what is there, not by what the header claims
	for i := range nKV {
		field := fmt.Sprintf("key %d of %d", i, nKV)
		key, err := c.str()
		if err != nil {
			return nil, fail(field, remedyCut, "its name: %w", err)
		}
		if key.from == key.to {
			return nil, fail(field, remedyWrong, "has no name")
		}
		typ, err := c.u32()
		if err != nil {
			return nil, fail("key "+c.text(key), remedyCut, "its type %w", err)
		}
		value, err := c.value(valueType(typ))
		if err != nil {
			remedy := remedyWrong
			if errors.Is(err, errShort) {
				remedy = remedyCut
			}
			return nil, &fault{"key " + c.text(key), remedy, err}
		}
		kvs = append(kvs, rawKV{key, value, valueType(typ)})
	}

	type rawTensor struct {
		name span
		Info
	}
	var tensors []rawTensor
	for i := range nTensors {
		t := rawTensor{}
		if t.name, t.Info, err = readTensor(c, i, nTensors); err != nil {
			return nil, err
		}
		tensors = append(tensors, t)
	}

	text := string(c.data[:c.pos]) // the one copy, of which all strings are parts
	h.meta = make([]keyValue, len(kvs))
	seen := make(map[string]bool, len(kvs))
	for i, kv := range kvs {
		key := text[kv.key.from:kv.key.to]
		if seen[key] {
			return nil, fail("key "+fileerr.Quote(key), remedyWrong, "occurs twice")
		}
		seen[key] = true
		h.meta[i] = keyValue{key, Value{kv.typ, text[kv.value.from:kv.value.to]}}
	}
	h.tensors = make([]Info, len(tensors))
	for i, t := range tensors {
		h.tensors[i] = t.Info
		h.tensors[i].Name = text[t.name.from:t.name.to]
	}
	if err := h.place(uint64(c.pos), uint64(c.size)); err != nil {
		return nil, err
	}
	return h, nil
}

func (h *header) readCounts(c *cursor) (nTensors, nKV uint64, err error) {
	c.more()
	if len(c.data) < 4 || string(c.data[:4]) != magic {
		got := string(c.data[:min(4, len(c.data))])
		remedy := "give a .gguf file, or the folder of a Hugging Face model"
		return 0, 0, fail("header", remedy, "this is not a GGUF file: it begins with %q, not with %q", got, magic)
	}
	c.pos = 4
	if h.version, err = c.u32(); err != nil {
		return 0, 0, fail("header", remedyCut, "the version %w", err)
	}
	switch v := h.version; {
	case v != 0 && v&0xffff == 0: // 2 or 3 with its bytes the other way round
		return 0, 0, fail("header", "convert it on or for a little-endian machine",
			"the file is big-endian, which grove does not read")
	case v < 2:
		return 0, 0, fail("header", "convert it again with a current converter", "GGUF version %d is not supported", v)
	case v > version:
		return 0, 0, fail("header", "use a newer grove, or convert it to version 3",
			"GGUF version %d is newer than this grove knows (%d)", v, version)
	}
	if nTensors, err = c.u64(); err == nil {
		nKV, err = c.u64()
	}
	if err != nil {
		return 0, 0, fail("header", remedyCut, "the counts %w", err)
	}
	if nKV > min(maxCount, c.left()/minKV) {
		return 0, 0, fail("header", remedyWrong, "%d metadata keys do not fit a file of %d bytes", nKV, c.size)
	}
	if nTensors > min(maxCount, c.left()/minTensor) {
		return 0, 0, fail("header", remedyWrong, "%d tensors do not fit a file of %d bytes", nTensors, c.size)
	}
	return nTensors, nKV, nil
}

// readTensor reads one tensor's description; its offset still counts from the start of the data.
func readTensor(c *cursor, i, n uint64) (name span, t Info, err error) {
	field := fmt.Sprintf("tensor %d of %d", i, n)
	if name, err = c.str(); err != nil {
		return name, t, fail(field, remedyCut, "its name: %w", err)
	}
	if name.from == name.to {
		return name, t, fail(field, remedyWrong, "has no name")
	}
	field = "tensor " + c.text(name)
	dims, err := c.u32()
	if err != nil {
		return name, t, fail(field, remedyCut, "its number of dimensions %w", err)
	}
	if dims > maxDims {
		return name, t, fail(field, remedyWrong, "has %d dimensions, more than %d", dims, maxDims)
	}
	t.Shape = make([]int, dims)
	for d := range t.Shape {
		x, err := c.u64()
		if err != nil {
			return name, t, fail(field, remedyCut, "its shape %w", err)
		}
		if x > math.MaxInt {
			return name, t, fail(field, remedyWrong, "dimension %d is %d", d, x)
		}
		t.Shape[len(t.Shape)-1-d] = int(x) // the file has the innermost dimension first
	}
	typ, err := c.u32()
	if err == nil {
		t.Type = tensor.Type(typ)
		if t.Type >= 1<<16 {
			t.Type = numtype.Unknown // not to be taken for one of the types that only safetensors has
		}
		var off uint64
		if off, err = c.u64(); err == nil && off > math.MaxInt64 {
			return name, t, fail(field, remedyWrong, "its offset %d overflows", off)
		}
		t.offset = int64(off)
	}
	if err != nil {
		return name, t, fail(field, remedyCut, "its type and offset %w", err)
	}
	elements, err := numtype.CountElements(t.Shape)
	if err != nil {
		return name, t, &fault{field, remedyWrong, err}
	}
	if !storable(t.Type) {
		return name, t, nil // listed; an error for whoever asks for it
	}
	if _, err = t.Type.Size(tensor.Tensor{Shape: t.Shape}.Cols()); err != nil {
		return name, t, fail(field, remedyWrong, "a row: %w", err)
	}
	size, err := t.Type.Size(elements)
	if err != nil {
		return name, t, &fault{field, remedyWrong, err}
	}
	t.Size = int64(size)
	return name, t, nil
}
