package grove

import (
	"slices"
	"sync"

	"github.com/grovellm/grove/internal/grammar"
	"github.com/grovellm/grove/tokenizer"
)

// mostConstraints is how many grammars a model remembers with their masks.
const mostConstraints = 32

// constraints are the grammars that requests of a model asked for lately.
type constraints struct {
	once  sync.Once
	vocab *grammar.Vocab

	mu    sync.Mutex
	known []knownConstraint // the last used at the end
}

type knownConstraint struct {
	field, source string
	grammar       *grammar.Constraint
}

// constraint is what a request's output must match; nil for nothing.
func (m *Model) constraint(r *Request) (*grammar.Constraint, error) {
	field, source := "", ""
	for _, f := range []struct{ name, source string }{{"Grammar", r.Grammar}, {"JSONSchema", r.JSONSchema}, {"Regex", r.Regex}} {
		switch {
		case f.source == "":
		case source != "":
			return nil, optionf(f.name, "%s is set as well: give one of them", field)
		default:
			field, source = f.name, f.source
		}
	}
	if source == "" {
		return nil, nil
	}
	t := m.m.Tokenizer
	if t == nil {
		return nil, errNoTokenizer
	}
	c := &m.constraints
	c.once.Do(func() { c.vocab = grammar.NewVocab(pieces(t, m.m.Config.Vocab)) })
	if known := c.find(field, source); known != nil {
		return known, nil
	}
	compile := map[string]func(string) (*grammar.Grammar, error){"Grammar": grammar.GBNF, "JSONSchema": grammar.JSONSchema, "Regex": grammar.Regex}
	g, err := compile[field](source)
	if err != nil {
		return nil, optionf(field, "%v", err)
	}
	made := &grammar.Constraint{Grammar: g, Vocab: c.vocab, Encode: func(text string) []int32 {
		return t.Encode(text, tokenizer.EncodeOptions{})
	}}
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.known) == mostConstraints {
		c.known = slices.Delete(c.known, 0, 1)
	}
	c.known = append(c.known, knownConstraint{field, source, made})
	return made, nil
}

// find returns a grammar that is remembered; nil where it is not.
func (c *constraints) find(field, source string) *grammar.Constraint {
	c.mu.Lock()
	defer c.mu.Unlock()
	at := slices.IndexFunc(c.known, func(k knownConstraint) bool { return k.field == field && k.source == source })
	if at < 0 {
		return nil
	}
	k := c.known[at]
	c.known = append(slices.Delete(c.known, at, at+1), k)
	return k.grammar
}

// pieces are the texts that tokens add to an output, nil for those that add none or end it. A token of the user's own that changes
// the text of the token behind it counts as none.
func pieces(t *tokenizer.Tokenizer, vocab int) [][]byte {
	spaced := int32(-1)
	list := make([][]byte, vocab)
	for id := range int32(min(t.VocabSize(), vocab)) {
		if t.IsEOG(id) || t.IsSpecial(id) {
			continue
		}
		list[id] = t.Piece(id)
		if kind := t.Type(id); spaced < 0 && kind == tokenizer.Normal && len(list[id]) > 1 && list[id][0] == ' ' {
			spaced = id
		}
	}
	for id, piece := range list {
		kind := t.Type(int32(id))
		if spaced < 0 || kind == tokenizer.Normal || kind == tokenizer.Byte || piece == nil {
			continue
		}
		text := t.DecodeWith([]int32{int32(id), spaced}, tokenizer.DecodeOptions{Continue: true})
		if text != string(piece)+string(list[spaced]) {
			list[id] = nil
		}
	}
	return list
}
