// Tokens by frequency in a text, and the file that stores them (FR-Spec; DynaSpec §2.1).

package shortlist

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/grovellm/grove/gguf"
	"github.com/grovellm/grove/internal/files/fileerr"
	"github.com/grovellm/grove/internal/files/ggufkeys"
	"github.com/grovellm/grove/tokenizer"
)

// Ranks is a vocabulary in order of frequency. Any prefix of it is a shortlist.
type Ranks struct {
	// Order has every token of the vocabulary once: first those that no shortlist omits, then the
	// others in descending order of frequency. If frequencies are equal, the smaller id comes first: a
	// byte-pair vocabulary learned it earlier.
	Order  []int32
	Kept   int    // number of tokens at the beginning that are never omitted
	Source string // what was counted
	Key    string // the vocabulary's fingerprint; "": unknown
}

// Count ranks a vocabulary of n tokens by how often each occurs. Other tokens are not counted. t
// says which are special or stop tokens, which are kept whatever the size; it may be nil.
func Count(n int, t *tokenizer.Tokenizer, source string, texts ...[]int32) *Ranks {
	counts := make([]int64, n)
	for _, text := range texts {
		for _, token := range text {
			if uint(token) < uint(n) {
				counts[token]++
			}
		}
	}
	return Rank(counts, t, source)
}

// Rank is Count for tokens that are already counted: counts[i] is how often token i occurred.
func Rank(counts []int64, t *tokenizer.Tokenizer, source string) *Ranks {
	r := &Ranks{Source: source, Key: Fingerprint(t)}
	kept := make([]bool, len(counts))
	if t != nil {
		for id := range int32(min(len(counts), t.VocabSize())) {
			if t.IsSpecial(id) || t.IsEOG(id) {
				kept[id] = true
				r.Kept++
			}
		}
	}
	for id := range counts {
		r.Order = append(r.Order, int32(id))
	}
	slices.SortFunc(r.Order, func(a, b int32) int {
		if kept[a] != kept[b] {
			if kept[a] {
				return -1
			}
			return 1
		}
		return cmp.Or(cmp.Compare(counts[b], counts[a]), cmp.Compare(a, b))
	})
	return r
}

// First returns the n tokens of highest rank, or more if more are kept.
func (r *Ranks) First(n int) []int32 { return r.Order[:min(max(n, r.Kept), len(r.Order))] }

// Keys of a file of ranks. It is a GGUF file without tensors.
const (
	keyArch   = "general.architecture"
	arch      = "shortlist"
	keyRanks  = "shortlist.ranks"
	keyKept   = "shortlist.kept"
	keySource = "shortlist.source"
	keyVocab  = "shortlist.vocabulary"
)

// WriteFile writes the ranks to a GGUF file.
func (r *Ranks) WriteFile(path string) error {
	w := new(gguf.Writer)
	w.Set(keyArch, arch)
	w.Set(keySource, r.Source)
	w.Set(keyVocab, r.Key)
	w.Set(keyKept, uint32(r.Kept))
	w.Set(keyRanks, r.Order)
	return w.WriteFile(path)
}

// OpenRanks reads a file of ranks.
func OpenRanks(path string) (*Ranks, error) {
	f, err := gguf.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return readRanks(f, path)
}

func readRanks(f *gguf.File, path string) (*Ranks, error) {
	wrong := func(field, remedy, format string, args ...any) error {
		return &fileerr.Error{Format: "gguf", File: path, Field: "key " + fileerr.Quote(field), Remedy: remedy,
			Err: fmt.Errorf(format, args...)}
	}
	const remedy = "count the tokens again"
	k := ggufkeys.Of(f)
	if a := k.String(keyArch); k.Err() == nil && a != arch {
		return nil, wrong(keyArch, "name a file of token ranks", "is %q, want %q", a, arch)
	}
	r := &Ranks{Kept: k.Int(keyKept), Source: k.String(keySource, ""), Key: k.String(keyVocab, "")}
	ids := k.Ints(keyRanks)
	if err := k.Err(); err != nil {
		return nil, err
	}
	seen := make([]bool, len(ids))
	for i, id := range ids {
		if uint64(id) >= uint64(len(ids)) || seen[id] {
			return nil, wrong(keyRanks, remedy, "entry %d is token %d: want each of %d tokens once", i, id, len(ids))
		}
		seen[id] = true
		r.Order = append(r.Order, int32(id))
	}
	switch {
	case len(ids) == 0:
		return nil, wrong(keyRanks, remedy, "is empty")
	case r.Kept > len(ids):
		return nil, wrong(keyKept, remedy, "is %d of %d tokens", r.Kept, len(ids))
	}
	return r, nil
}

// For returns the ranks for a vocabulary of n tokens that t reads; t may be nil. If the tokenizers
// are the same, n may differ from the number of ranks by ids that stand for nothing: some models'
// vocabularies are longer than those of their tokenizers.
func (r *Ranks) For(n int, t *tokenizer.Tokenizer) (*Ranks, error) {
	key := Fingerprint(t)
	if key != "" && r.Key != "" && key != r.Key {
		return nil, fmt.Errorf("the ranks are of another vocabulary than these %d tokens: count them with this model's tokenizer", n)
	}
	if len(r.Order) != n && (key == "" || r.Key == "") {
		return nil, fmt.Errorf("the ranks are of %d tokens and the vocabulary has %d: count them with this model's tokenizer", len(r.Order), n)
	}
	r = r.keep(func(token int32) bool { return int(token) < n })
	for id := len(r.Order); id < n; id++ {
		r.Order = append(r.Order, int32(id))
	}
	return r, nil
}

// Of returns the ranks of the tokens that a head has.
func (r *Ranks) Of(h *Head) *Ranks {
	return r.keep(func(token int32) bool { return h.Row(token) >= 0 })
}

// keep returns the ranks of the wanted tokens only.
func (r *Ranks) keep(wanted func(token int32) bool) *Ranks {
	w := &Ranks{Source: r.Source, Key: r.Key}
	for i, token := range r.Order {
		if wanted(token) {
			w.Order = append(w.Order, token)
			if i < r.Kept {
				w.Kept++
			}
		}
	}
	return w
}
