package tokenizer

// Unigram models (Kudo, Subword Regularization, 2018, section 3): of all ways to cut a word into
// pieces, the one whose scores have the highest sum. A character that is no piece counts as one piece
// of a score below all others.

import (
	"math"
	"strings"

	"github.com/grovellm/grove/gguf"
	"github.com/grovellm/grove/internal/files/ggufkeys"
	"github.com/grovellm/grove/internal/files/tokenkind"
)

// unknownPenalty is how far below the lowest score that of an unknown character lies, in SentencePiece
// and in what follows it.
const unknownPenalty = 10

// lattice holds the pieces of a Unigram model.
type lattice struct {
	pieces  *matcher
	scores  []float64 // by token
	unknown float64   // score of a character that is no piece
}

// indexPieces makes the trie of pieces. A token whose score is −∞ is none.
func (t *Tokenizer) indexPieces(s *spec) error {
	if t.unk == none {
		return s.errorf("unknown", "missing, or not of the type Unknown, but a Unigram model needs a token for unknown text")
	}
	t.lattice = &lattice{pieces: newMatcher(nil), scores: s.scores, unknown: s.lowest - unknownPenalty}
	// Frequent pieces have low ids. Added last, they are the first siblings in the trie.
	for id := int32(len(t.text)) - 1; id >= 0; id-- {
		text := t.text[id]
		switch ty := t.types[id]; {
		case ty != tokenkind.Normal && ty != tokenkind.UserDefined || math.IsInf(s.scores[id], -1) || text == "":
		case len(text) > maxPiece:
			return s.errorf("tokens", "entry %d has %d bytes: want at most %d", id, len(text), maxPiece)
		case t.words[text] != id:
			return s.errorf("tokens", "entries %d and %d are the same piece, %q", t.words[text], id, text)
		default:
			t.lattice.pieces.add(text, id)
		}
	}
	return nil
}

// segment appends the tokens of the best segmentation of w. Of equal ones it takes the one whose last
// piece is longest, and so on to the front.
func (t *Tokenizer) segment(dst []int32, w string, from int, sc *scratch) []int32 {
	l, n := t.lattice, len(w)
	// Of the best segmentation up to a place: its sum, and where its last piece begins and which it is.
	sc.sum = grow(sc.sum, n+1)
	sc.prev = grow(sc.prev, n+1)
	sc.next = grow(sc.next, n+1)
	sum := sc.sum
	start := sc.prev
	token := sc.next
	for i := range start {
		start[i] = -1
	}
	sum[0] = 0
	for i := 0; i < n; {
		offer := func(end int, id int32, score float64) {
			if x := sum[i] + score; start[end] < 0 || x > sum[end] {
				sum[end] = x
				start[end] = int32(i)
				token[end] = id
			}
		}
		at := int32(0)
		for end := i; end < n; {
			at = l.pieces.child(at, w[end])
			if at == 0 {
				break
			}
			end++
			sc.work++
			if id := l.pieces.nodes[at].token; id >= 0 {
				offer(end, id, l.scores[id])
			}
		}
		next := i + char(w[i:])
		offer(next, t.unk, l.unknown) // below the score of a piece
		i = next
	}
	ends := sc.sym[:0]
	for end := int32(n); end > 0; end = start[end] {
		ends = append(ends, end)
	}
	sc.sym = ends
	for i := len(ends) - 1; i >= 0; i-- {
		end := ends[i]
		if token[end] != t.unk {
			dst = append(dst, token[end])
			continue
		}
		begin := start[end]
		for i > 0 && token[ends[i-1]] == t.unk { // unknown characters in a row are one
			i--
		}
		dst = spell(t, dst, w[begin:ends[i]], from)
	}
	return dst
}

// ggufUnigram reads what a GGUF file says of a Unigram model besides its tokens.
func (s *spec) ggufUnigram(f *gguf.File, k *ggufkeys.Keys) error {
	const key = "tokenizer.ggml.precompiled_charsmap"
	s.model = unigram
	s.fuseUnk = true
	s.growth = 1
	front := k.Bool("tokenizer.ggml.add_space_prefix", false)
	merge := k.Bool("tokenizer.ggml.remove_extra_whitespaces", false)
	if front || merge {
		s.space = spaceSegments
	}
	s.escape = []normalizer{unigramSpaces(front, merge)}
	s.lowest = math.Inf(1)
	for i, ty := range s.types[:min(len(s.types), len(s.scores))] {
		switch {
		case ty == tokenkind.Normal && !math.IsInf(s.scores[i], -1):
			s.lowest = min(s.lowest, s.scores[i])
		case ty == tokenkind.UserDefined: // preferred to its parts where the normaliser makes it
			s.scores[i] = 0
		}
	}
	v, ok := f.Lookup(key)
	if !ok || v.Len() == 0 {
		return nil
	}
	if t := v.Type(); t != "[]u8" && t != "[]i8" || v.Len() > maxCharsmap {
		return s.errorf(key, "%v: want an array of at most %d bytes", v, maxCharsmap)
	}
	numbers, _ := gguf.As[[]int64](v)
	blob := make([]byte, len(numbers))
	for i, b := range numbers {
		blob[i] = byte(b)
	}
	m, err := s.readCharsmap(key, blob)
	if err != nil {
		return err
	}
	s.normalize = []normalizer{m.longest}
	return nil
}

// unigramSpaces is llama.cpp's for Unigram models: ▁ for spaces. front puts one more before the first
// word, merge leaves one before every word and none elsewhere.
func unigramSpaces(front, merge bool) normalizer {
	return func(s string, _ bool) string {
		var b strings.Builder
		wanted := front
		for s != "" {
			word := strings.TrimLeft(s, " ")
			if !merge {
				b.WriteString(strings.Repeat("▁", len(s)-len(word)))
			}
			s = ""
			if word == "" {
				break
			}
			if wanted || merge {
				b.WriteString("▁")
			}
			wanted = false
			if i := strings.IndexByte(word, ' '); i >= 0 {
				word, s = word[:i], word[i:]
			}
			b.WriteString(word)
		}
		return b.String()
	}
}
