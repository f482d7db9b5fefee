// Walking a header's bytes: numbers, strings and values, each checked to lie within the file before it is read.

package gguf

import (
	"encoding/binary"
	"errors"
	"fmt"

	"github.com/grovellm/grove/tensor"
)

var errShort = errors.New("goes beyond the end of the file")

// cursor walks the header. Its slices alias the mapped file and are not kept.
type cursor struct {
	data []byte
	pos  int
}

func (c *cursor) left() int { return len(c.data) - c.pos }

func (c *cursor) u32() (uint32, error) {
	if c.left() < 4 {
		return 0, errShort
	}
	c.pos += 4
	return binary.LittleEndian.Uint32(c.data[c.pos-4:]), nil
}

func (c *cursor) u64() (uint64, error) {
	if c.left() < 8 {
		return 0, errShort
	}
	c.pos += 8
	return binary.LittleEndian.Uint64(c.data[c.pos-8:]), nil
}

// span is a stretch of the header, by position: strings are cut from one copy once the header's end is known.
type span struct{ from, to int }

func (c *cursor) str() (span, error) {
	n, err := c.u64()
	if err != nil {
		return span{}, err
	}
	if n > uint64(c.left()) {
		return span{}, fmt.Errorf("a string of %d bytes %w", n, errShort)
	}
	s := span{c.pos, c.pos + int(n)}
	c.pos = s.to
	return s, nil
}

// text is a string for messages.
func (c *cursor) text(s span) string {
	return tensor.Quote(string(c.data[s.from:min(s.to, s.from+128)]))
}

// valueEnd returns how many bytes of b a value of type t takes, having checked that it lies within.
func valueEnd[B []byte | string](b B, t ValueType, depth int) (int, error) {
	if !t.known() {
		return 0, fmt.Errorf("has %v, which GGUF version %d does not know", t, version)
	}
	size := valueTypes[t].bytes
	if len(b) < size {
		return 0, errShort
	}
	switch t {
	case String:
		n := u64at(b, 0)
		if n > uint64(len(b)-8) {
			return 0, fmt.Errorf("a string of %d bytes %w", n, errShort)
		}
		return 8 + int(n), nil
	case Array:
		return arrayEnd(b, depth)
	}
	return size, nil
}

func arrayEnd[B []byte | string](b B, depth int) (int, error) {
	t, n := ValueType(uint32(u64at(b, 0))), u64at(b, 4)
	if !t.known() {
		return 0, fmt.Errorf("is an array of %v, which GGUF version %d does not know", t, version)
	}
	if depth >= maxDepth {
		return 0, fmt.Errorf("has arrays nested more than %d deep", maxDepth)
	}
	size := valueTypes[t].bytes
	if n > uint64(len(b)-12)/uint64(size) {
		return 0, fmt.Errorf("an array of %d × %v %w", n, t, errShort)
	}
	if t != String && t != Array {
		return 12 + int(n)*size, nil
	}
	pos := 12
	for i := range n {
		end, err := valueEnd(b[pos:], t, depth+1)
		if err != nil {
			return 0, fmt.Errorf("element %d %w", i, err)
		}
		pos += end
	}
	return pos, nil
}

// u64at reads eight bytes at a place where the caller has checked for eight.
func u64at[B []byte | string](b B, at int) uint64 {
	var x uint64
	for i := 7; i >= 0; i-- {
		x = x<<8 | uint64(b[at+i])
	}
	return x
}
