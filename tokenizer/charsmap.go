package tokenizer

// SentencePiece's precompiled character map: rules that replace a text by another, most of them
// characters by their NFKC forms. The file has the length of a trie in bytes, the trie as a double
// array of little-endian uint32, and the replacements, each ended by a zero byte. A unit of the array
// has its label in the bits 0 to 7, whether a rule ends there in bit 8, and the distance of its
// children in the bits 10 to 30, times 256 if bit 9 is set. A unit with bit 31 is the place of a
// replacement.

import (
	"encoding/binary"
	"math"
	"strings"
	"unicode/utf8"

	"github.com/rivo/uniseg"
)

// maxCharsmap bounds the bytes of a map; those in use have under 400 KB.
const maxCharsmap = 4 << 20

type charsmap struct {
	units []uint32
	texts string // the replacements
}

func unitOffset(u uint32) uint32 { return u >> 10 << (u >> 6 & 8) }

// child follows the label c from the place at. at is then the place of the next children, and ends
// says whether a rule ends here.
func (m *charsmap) child(at uint32, c byte) (_ uint32, ends, ok bool) {
	at ^= uint32(c)
	u := m.units[at]
	return at ^ unitOffset(u), u>>8&1 != 0, u&(1<<31|0xff) == uint32(c)
}

// text is the replacement of the rule that ends at the place at.
func (m *charsmap) text(at uint32) string {
	text := m.texts[m.units[at]&math.MaxInt32:]
	return text[:strings.IndexByte(text, 0)]
}

// readCharsmap checks all that a text can reach, so that finding a rule need not.
func (s *spec) readCharsmap(field string, blob []byte) (*charsmap, error) {
	broken := func(what string) (*charsmap, error) {
		return nil, s.errorf(field, "the precompiled character map is broken: %s", what)
	}
	if len(blob) > maxCharsmap {
		return broken("it is too long")
	}
	if len(blob) < 4 {
		return broken("it has no length")
	}
	size := binary.LittleEndian.Uint32(blob)
	blob = blob[4:]
	if size == 0 || size%4 != 0 || uint64(size) >= uint64(len(blob)) {
		return broken("its trie does not fit")
	}
	m := &charsmap{units: make([]uint32, size/4), texts: string(blob[size:])}
	for i := range m.units {
		m.units[i] = binary.LittleEndian.Uint32(blob[4*i:])
	}
	if !utf8.ValidString(m.texts) || m.texts[len(m.texts)-1] != 0 {
		return broken("its replacements are not terminated")
	}
	type place struct{ at, depth uint32 }
	growth := 1.0
	seen := make([]bool, len(m.units))
	queue := []place{{unitOffset(m.units[0]), 0}}
	for len(queue) > 0 { // places nearer to the root first: the shortest text that a rule replaces decides
		p := queue[0]
		queue = queue[1:]
		if uint64(p.at|0xff) >= uint64(len(m.units)) {
			return broken("its trie points outside itself")
		}
		if seen[p.at] {
			continue
		}
		seen[p.at] = true
		for c := range 255 {
			at, ends, ok := m.child(p.at, byte(c+1))
			if !ok {
				continue
			}
			queue = append(queue, place{at, p.depth + 1})
			if !ends {
				continue
			}
			if uint64(at) >= uint64(len(m.units)) {
				return broken("its trie points outside itself")
			}
			if v := m.units[at]; v>>31 == 0 || int(v&math.MaxInt32) >= len(m.texts) || !utf8.RuneStart(m.texts[v&math.MaxInt32]) {
				return broken("a rule has no replacement")
			}
			growth = max(growth, float64(len(m.text(at)))/float64(p.depth+1))
		}
	}
	s.growth *= growth
	return m, s.checkGrowth(field)
}

// find returns the replacement of the longest text at the start of s that has a rule, or of the
// shortest, and the length of that text, 0 where there is none.
func (m *charsmap) find(s string, shortest bool) (text string, n int) {
	at, rule := unitOffset(m.units[0]), uint32(0)
	for i := 0; i < len(s) && s[i] != 0 && !(shortest && n > 0); i++ {
		next, ends, ok := m.child(at, s[i])
		if !ok {
			break
		}
		at = next
		if ends {
			n, rule = i+1, at
		}
	}
	if n > 0 {
		text = m.text(rule)
	}
	return text, n
}

// longest is SentencePiece's normalisation, and llama.cpp's: from left to right, the longest text that
// has a rule.
func (m *charsmap) longest(s string, _ bool) string {
	var b strings.Builder
	for s != "" {
		text, n := m.find(s, false)
		if n == 0 {
			n = char(s)
			text = s[:n]
		}
		b.WriteString(text)
		s = s[n:]
	}
	return b.String()
}

// graphemes is that of Hugging Face's tokenizers: the shortest rule that begins a grapheme replaces all
// of it, if it has under 6 bytes; otherwise each character is replaced for itself.
func (m *charsmap) graphemes(s string, _ bool) string {
	var b strings.Builder
	state := -1
	for s != "" {
		var cluster string
		cluster, s, _, state = uniseg.FirstGraphemeClusterInString(s, state)
		if len(cluster) < 6 {
			if text, n := m.find(cluster, true); n > 0 {
				b.WriteString(text)
				continue
			}
		}
		for cluster != "" {
			n := char(cluster)
			if text, found := m.find(cluster[:n], true); found > 0 {
				b.WriteString(text)
			} else {
				b.WriteString(cluster[:n])
			}
			cluster = cluster[n:]
		}
	}
	return b.String()
}
