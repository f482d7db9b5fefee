package tokenizer

// Finding special and added tokens in text: leftmost, and the longest where several begin at one
// place, as Hugging Face does. A trie walked from each place where a token can begin; the cost of a
// place is bounded by the longest token.

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// attr says how an added token is matched in text.
type attr uint8

const (
	attrLeft       attr = 1 << iota // takes the white space before it
	attrRight                       // takes the white space after it
	attrWord                        // stands between characters that are not of a word
	attrNormalized                  // is looked for after normalisation
)

// matcher is a trie over bytes in first-child, next-sibling form; node 0 is the root.
type matcher struct {
	nodes []trieNode
	first [256]int32 // the root's children by byte, 0 for none
	attrs map[int32]attr
}

type trieNode struct {
	child, sibling int32
	token          int32 // −1 for none
	b              byte
}

func newMatcher(attrs map[int32]attr) *matcher {
	return &matcher{nodes: []trieNode{{token: -1}}, attrs: attrs}
}

// add puts in a token; the first of equal texts stays.
func (m *matcher) add(text string, token int32) {
	if text == "" {
		return
	}
	at := int32(0)
	for i := range len(text) {
		c := m.child(at, text[i])
		if c == 0 {
			c = int32(len(m.nodes))
			m.nodes = append(m.nodes, trieNode{sibling: m.nodes[at].child, token: -1, b: text[i]})
			m.nodes[at].child = c
			if at == 0 {
				m.first[text[i]] = c
			}
		}
		at = c
	}
	if m.nodes[at].token < 0 {
		m.nodes[at].token = token
	}
}

func (m *matcher) child(at int32, b byte) int32 {
	if at == 0 {
		return m.first[b]
	}
	c := m.nodes[at].child
	for c != 0 && m.nodes[c].b != b {
		c = m.nodes[c].sibling
	}
	return c
}

func (m *matcher) empty() bool { return m == nil || len(m.nodes) == 1 }

// span is a token found in text, with the white space that it takes. The search goes on at after,
// the end of the token itself: Hugging Face finds a token even in white space that another has taken.
type span struct {
	start, end, after int
	token             int32
}

// next finds the first token in text at or after from; ok is false where there is none. Text before
// taken belongs to the last one.
func (m *matcher) next(text string, from, taken int) (_ span, ok bool) {
	for i := from; i < len(text); {
		at := m.first[text[i]]
		if at == 0 {
			i++
			continue
		}
		end, token := 0, int32(-1)
		for k := i + 1; ; k++ {
			if n := &m.nodes[at]; n.token >= 0 {
				end, token = k, n.token
			}
			if k == len(text) {
				break
			}
			at = m.child(at, text[k])
			if at == 0 {
				break
			}
		}
		if token < 0 {
			i++
			continue
		}
		a := m.attrs[token]
		if a&attrWord != 0 && (endsInWord(text[:i]) || startsWithWord(text[end:])) {
			i = end
			continue
		}
		sp := span{i, end, end, token}
		if a&attrLeft != 0 {
			sp.start = taken
			if taken < i {
				sp.start += len(strings.TrimRightFunc(text[taken:i], unicode.IsSpace))
			}
		}
		if a&attrRight != 0 {
			// Where the token lies in white space that another has taken, that one has found its end.
			sp.end = taken
			if taken <= end {
				sp.end = len(text) - len(strings.TrimLeftFunc(text[end:], unicode.IsSpace))
			}
		}
		return sp, true
	}
	return span{}, false
}

// wordRune is \w: alphabetic, mark, digit, connector, joiner.
func wordRune(r rune) bool {
	return unicode.In(r, unicode.L, unicode.Nl, unicode.Other_Alphabetic, unicode.M, unicode.Nd, unicode.Pc,
		unicode.Join_Control)
}

func endsInWord(s string) bool {
	r, _ := utf8.DecodeLastRuneInString(s)
	return s != "" && wordRune(r)
}

func startsWithWord(s string) bool {
	r, _ := utf8.DecodeRuneInString(s)
	return s != "" && wordRune(r)
}
