package textstore

import (
	"cmp"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"os"
	"path/filepath"
	"slices"

	"github.com/grovellm/grove/draft"
	"github.com/grovellm/grove/internal/files/atomicfile"
)

// segment has texts in the order of Add, and their tokens sorted by the tokens before them.
//
// In that order, the tokens that followed the longest match of a text's end are next to the place
// where the end itself would be: one binary search finds them.
type segment struct {
	from, to int64    // numbers of its texts: [from, to)
	tokens   []int32  // of each text: the context, the text, and end
	filed    bool     // it need not be merged with newer ones to become a file
	order    []uint32 // places of the texts' tokens in tokens, sorted by the tokens before them, the nearest first
}

// words returns the segment's size in words of 4 bytes.
func (s *segment) words() int { return len(s.tokens) + len(s.order) }

// end follows each text; no token equals it, and it sorts before all of them.
const end = -1

// newSegment sorts one text. Its first context tokens are only there to be matched.
func newSegment(number int64, text []int32, context int) *segment {
	s := &segment{from: number, to: number + 1, tokens: append(slices.Clip(text), end),
		order: make([]uint32, len(text)-context)}
	for i := range s.order {
		s.order[i] = uint32(context + i)
	}
	slices.SortFunc(s.order, func(a, b uint32) int {
		return cmp.Or(compare(s.tokens[:a], s.tokens[:b]), cmp.Compare(b, a))
	})
	return s
}

// compare compares two texts from their ends, at most MatchMost tokens.
func compare(a, b []int32) int {
	for d := 1; d <= MatchMost; d++ {
		x, y := int32(end), int32(end)
		if d <= len(a) {
			x = a[len(a)-d]
		}
		if d <= len(b) {
			y = b[len(b)-d]
		}
		if x != y {
			return cmp.Compare(x, y)
		}
		if x == end {
			return 0
		}
	}
	return 0
}

// common returns the number of tokens at the ends of both texts that are the same, at most MatchMost.
func common(a, b []int32) int {
	n := min(len(a), len(b), MatchMost)
	for d := range n {
		if x := a[len(a)-1-d]; x != b[len(b)-1-d] || x == end {
			return d
		}
	}
	return n
}

// merge makes one segment of two neighbours, a the older one.
func merge(a, b *segment) *segment {
	s := &segment{
		from: a.from, to: b.to,
		tokens: slices.Concat(a.tokens, b.tokens),
		order:  make([]uint32, 0, len(a.order)+len(b.order)),
	}
	x := a.order
	y := b.order
	shift := uint32(len(a.tokens))
	for len(x) > 0 && len(y) > 0 {
		if compare(a.tokens[:x[0]], b.tokens[:y[0]]) < 0 {
			s.order, x = append(s.order, x[0]), x[1:]
		} else { // of equal ones the newer first
			s.order, y = append(s.order, y[0]+shift), y[1:]
		}
	}
	s.order = append(s.order, x...)
	for _, p := range y {
		s.order = append(s.order, p+shift)
	}
	return s
}

// match appends the places whose match with the end of text is the longest: at most most of them, of
// least tokens or more.
func (s *segment) match(dst []draft.Match, text []int32, least, most int) []draft.Match {
	high, _ := slices.BinarySearchFunc(s.order, text, func(p uint32, text []int32) int { return compare(s.tokens[:p], text) })
	low := high - 1
	length := func(i int) int {
		if i < 0 || i >= len(s.order) {
			return -1
		}
		return common(s.tokens[:s.order[i]], text)
	}
	below, above := length(low), length(high)
	for ; most > 0 && max(below, above) >= least; most-- {
		if above >= below {
			dst = append(dst, s.at(high, above))
			high++
			above = length(high)
		} else {
			dst = append(dst, s.at(low, below))
			low--
			below = length(low)
		}
	}
	return dst
}

// at returns the match of place i of the order.
func (s *segment) at(i, length int) draft.Match {
	p := int(s.order[i])
	next := s.tokens[p:min(p+NextMost, len(s.tokens))]
	if n := slices.Index(next, end); n >= 0 {
		next = next[:n]
	}
	return draft.Match{Length: length, Next: next}
}

// A segment's file: the magic word, the counts of tokens and of places, both lists, and a checksum of all.
const magic = "grovemem"

var checksums = crc32.MakeTable(crc32.Castagnoli)

// suffix ends the names of segments' files.
const suffix = ".segment"

func (s *segment) path(dir string) string {
	return filepath.Join(dir, fmt.Sprintf("%016x-%016x%s", s.from, s.to, suffix))
}

// write writes the segment's file.
func (s *segment) write(dir string) error {
	return atomicfile.Write(s.path(dir), func(w io.Writer) error {
		sum := crc32.New(checksums)
		all := io.MultiWriter(w, sum)
		if _, err := io.WriteString(all, magic); err != nil {
			return err
		}
		for _, v := range []any{uint64(len(s.tokens)), uint64(len(s.order)), s.tokens, s.order} {
			if err := binary.Write(all, binary.LittleEndian, v); err != nil {
				return err
			}
		}
		return binary.Write(w, binary.LittleEndian, sum.Sum32())
	})
}

// readSegment reads a segment's file and checks it.
func readSegment(path string) (*segment, error) {
	s := &segment{filed: true}
	name := filepath.Base(path)
	if _, err := fmt.Sscanf(name, "%016x-%016x"+suffix, &s.from, &s.to); err != nil || s.from < 0 || s.to <= s.from {
		return nil, fmt.Errorf("memory: %s: the name is not that of a segment: remove the file", path)
	}
	data, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("memory: %w", err)
	}
	if err := s.decode(data); err != nil {
		return nil, fmt.Errorf("memory: %s: %w: remove the file; its texts are then forgotten", path, err)
	}
	return s, nil
}

func (s *segment) decode(data []byte) error {
	const head, tail = len(magic) + 16, 4
	damaged := errors.New("the file is damaged")
	if len(data) < head+tail || string(data[:len(magic)]) != magic {
		return damaged
	}
	body := data[:len(data)-tail]
	tokens, places := binary.LittleEndian.Uint64(body[len(magic):]), binary.LittleEndian.Uint64(body[len(magic)+8:])
	most := uint64(len(body)-head) / 4
	if tokens > most || places > most || tokens+places != most || len(body) != head+4*int(most) ||
		crc32.Checksum(body, checksums) != binary.LittleEndian.Uint32(data[len(body):]) {
		return damaged
	}
	s.tokens, s.order = make([]int32, tokens), make([]uint32, places)
	for i := range s.tokens {
		s.tokens[i] = int32(binary.LittleEndian.Uint32(body[head+4*i:]))
	}
	for i := range s.order {
		s.order[i] = binary.LittleEndian.Uint32(body[head+4*(int(tokens)+i):])
		if uint64(s.order[i]) >= tokens {
			return damaged
		}
	}
	return nil
}
