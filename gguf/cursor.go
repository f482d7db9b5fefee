// Walking a header's bytes: numbers, strings and values, each checked to lie within the file before it is read.

package gguf

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"

	"github.com/grovellm/grove/internal/files/fileerr"
)

var errShort = errors.New("goes beyond the end of the file")

// cursor walks the header, and reads more of the file as it comes to it.
type cursor struct {
	file   io.ReaderAt
	size   int64  // of the file
	data   []byte // its beginning, as far as it was read
	pos    int
	failed error // of the first read that failed
}

// firstRead is how much of a file is read at first. Each time that more is needed, as much as is
// there is read again.
const firstRead = 1 << 20

// more reads on; it is false at the end of the file, and where reading fails.
func (c *cursor) more() bool {
	have := int64(len(c.data))
	if have == c.size || c.failed != nil {
		return false
	}
	c.data = append(c.data, make([]byte, min(max(have, firstRead), c.size-have))...)
	if _, c.failed = c.file.ReadAt(c.data[have:], have); c.failed != nil {
		c.data = c.data[:have]
	}
	return c.failed == nil
}

// left is the number of bytes from pos to the end of the file.
func (c *cursor) left() uint64 { return uint64(c.size - int64(c.pos)) }

// need reads until the next n bytes are in data.
func (c *cursor) need(n uint64) error {
	if n > c.left() {
		return errShort
	}
	for n > uint64(len(c.data)-c.pos) {
		if !c.more() {
			return c.failed
		}
	}
	return nil
}

func (c *cursor) u32() (uint32, error) {
	if err := c.need(4); err != nil {
		return 0, err
	}
	c.pos += 4
	return binary.LittleEndian.Uint32(c.data[c.pos-4:]), nil
}

func (c *cursor) u64() (uint64, error) {
	if err := c.need(8); err != nil {
		return 0, err
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
	if err := c.need(n); err != nil {
		return span{}, fmt.Errorf("a string of %d bytes %w", n, err)
	}
	s := span{c.pos, c.pos + int(n)}
	c.pos = s.to
	return s, nil
}

// text is a string for messages.
func (c *cursor) text(s span) string {
	return fileerr.Quote(string(c.data[s.from:min(s.to, s.from+128)]))
}

// value finds the end of a value of type t, and goes there.
func (c *cursor) value(t valueType) (span, error) {
	for {
		n, err := valueEnd(c.data[c.pos:], t, 0)
		if errors.Is(err, errShort) && c.more() {
			continue
		}
		s := span{c.pos, c.pos + n}
		c.pos = s.to
		return s, err
	}
}

// valueEnd returns how many bytes of b a value of type t takes, having checked that it lies within.
func valueEnd[B []byte | string](b B, t valueType, depth int) (int, error) {
	if !t.known() {
		return 0, fmt.Errorf("has %v, which GGUF version %d does not know", t, version)
	}
	size := valueTypes[t].bytes
	if len(b) < size {
		return 0, errShort
	}
	switch t {
	case typeString:
		n := u64at(b, 0)
		if n > uint64(len(b)-8) {
			return 0, fmt.Errorf("a string of %d bytes %w", n, errShort)
		}
		return 8 + int(n), nil
	case typeArray:
		return arrayEnd(b, depth)
	}
	return size, nil
}

func arrayEnd[B []byte | string](b B, depth int) (int, error) {
	t, n := valueType(uint32(u64at(b, 0))), u64at(b, 4)
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
	if t != typeString && t != typeArray {
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
