package tokenizer

// The vocabulary of a tokenizer.json: model and added_tokens.

import (
	"bytes"
	"encoding/json"
	"fmt"
	"github.com/grovellm/grove/internal/files/tokenkind"
	"math"
	"slices"
)

type tokenizerJSON struct {
	AddedTokens   []addedToken    `json:"added_tokens"`
	Normalizer    json.RawMessage `json:"normalizer"`
	PreTokenizer  json.RawMessage `json:"pre_tokenizer"`
	PostProcessor json.RawMessage `json:"post_processor"`
	Decoder       json.RawMessage `json:"decoder"`
	Model         json.RawMessage `json:"model"`
}

type addedToken struct {
	ID         int64  `json:"id"`
	Content    string `json:"content"`
	SingleWord bool   `json:"single_word"`
	LStrip     bool   `json:"lstrip"`
	RStrip     bool   `json:"rstrip"`
	Normalized bool   `json:"normalized"`
	Special    bool   `json:"special"`
}

type modelJSON struct {
	Type         string           `json:"type"`
	Dropout      float64          `json:"dropout"`
	Unk          *string          `json:"unk_token"`
	Prefix       string           `json:"continuing_subword_prefix"`
	Suffix       string           `json:"end_of_word_suffix"`
	FuseUnk      bool             `json:"fuse_unk"`
	ByteFallback bool             `json:"byte_fallback"`
	IgnoreMerges bool             `json:"ignore_merges"`
	Vocab        map[string]int64 `json:"vocab"`
	Merges       []mergePair      `json:"merges"`
}

// mergePair is ["a", "b"], or "a b" in older files.
type mergePair [2]string

func (m *mergePair) UnmarshalJSON(b []byte) error {
	if bytes.HasPrefix(b, []byte("[")) {
		var pair []string
		if err := json.Unmarshal(b, &pair); err != nil {
			return err
		}
		if len(pair) != 2 {
			return fmt.Errorf("model.merges: %s is not a pair", b)
		}
		*m = mergePair(pair)
		return nil
	}
	var text string
	if err := json.Unmarshal(b, &text); err != nil {
		return err
	}
	pair, ok := cutMerge(text)
	if !ok {
		return fmt.Errorf("model.merges: %q is not two texts separated by a space", text)
	}
	*m = pair
	return nil
}

// strict unmarshals what changes the ids: a field that is not known is an error.
func strict(raw json.RawMessage, to any) error {
	d := json.NewDecoder(bytes.NewReader(raw))
	d.DisallowUnknownFields()
	return d.Decode(to)
}

func kindOf(raw json.RawMessage) string {
	var k struct {
		Type string `json:"type"`
	}
	_ = json.Unmarshal(raw, &k) // what is not an object has no type
	return k.Type
}

func (s *spec) readModel(file *tokenizerJSON) error {
	switch k := kindOf(file.Model); {
	case k == "Unigram":
		return s.readUnigram(file)
	case k != "BPE" && !(k == "" && bytes.Contains(file.Model, []byte(`"merges"`))):
		return s.errorf("model.type", "%q is not known; known are BPE and Unigram", k)
	}
	var m modelJSON
	if err := strict(file.Model, &m); err != nil {
		return s.errorf("model", "%v", err)
	}
	switch {
	case m.Dropout != 0:
		return s.errorf("model.dropout", "%g would make ids random; set it to null", m.Dropout)
	case m.Prefix != "":
		return s.errorf("model.continuing_subword_prefix", "%q is not supported", m.Prefix)
	case m.Suffix != "":
		return s.errorf("model.end_of_word_suffix", "%q is not supported", m.Suffix)
	}
	s.ignoreMerges, s.fuseUnk = m.IgnoreMerges, m.FuseUnk
	s.merges = make([][2]string, len(m.Merges))
	for i, p := range m.Merges {
		s.merges[i] = p
	}
	if err := s.numberTokens(m.Vocab, file.AddedTokens); err != nil {
		return err
	}
	if m.ByteFallback {
		s.markBytes()
	}
	if m.Unk != nil {
		id, ok := m.Vocab[*m.Unk]
		if !ok {
			return s.errorf("model.unk_token", "%q is not in the vocabulary", *m.Unk)
		}
		s.unk = int32(id)
		s.types[id] = tokenkind.Unknown
	}
	return nil
}

// markBytes gives the tokens that are named as bytes their type.
func (s *spec) markBytes() {
	for id, text := range s.tokens {
		if _, ok := fallbackByte(text); ok && s.types[id] == tokenkind.Normal {
			s.types[id] = tokenkind.Byte
		}
	}
}

type unigramJSON struct {
	Type         string        `json:"type"`
	Unk          *int64        `json:"unk_id"`
	ByteFallback bool          `json:"byte_fallback"`
	Vocab        []scoredPiece `json:"vocab"`
}

// scoredPiece is ["piece", score].
type scoredPiece struct {
	text  string
	score float64
}

func (p *scoredPiece) UnmarshalJSON(b []byte) error {
	pair := []any{&p.text, &p.score}
	if err := json.Unmarshal(b, &pair); err != nil {
		return err
	}
	if len(pair) != 2 || pair[0] == nil || pair[1] == nil {
		return fmt.Errorf("model.vocab: %s is not a piece with its score", b)
	}
	return nil
}

func (s *spec) readUnigram(file *tokenizerJSON) error {
	var m unigramJSON
	if err := strict(file.Model, &m); err != nil {
		return s.errorf("model", "%v", err)
	}
	s.model, s.lowest = unigram, math.Inf(1)
	vocab := make(map[string]int64, len(m.Vocab))
	for i, p := range m.Vocab {
		if first, ok := vocab[p.text]; ok {
			return s.errorf("tokens", "entries %d and %d are the same piece, %q", first, i, p.text)
		}
		vocab[p.text] = int64(i)
		s.lowest = min(s.lowest, p.score)
	}
	if err := s.numberTokens(vocab, file.AddedTokens); err != nil {
		return err
	}
	s.scores = slices.Repeat([]float64{math.Inf(-1)}, len(s.tokens)) // added tokens are no pieces
	for i, p := range m.Vocab {
		s.scores[i] = p.score
	}
	if m.ByteFallback {
		s.markBytes()
	}
	switch {
	case m.Unk == nil:
		return s.errorf("unknown", "missing, but a Unigram model needs a token for unknown text")
	case *m.Unk < 0 || *m.Unk >= int64(len(m.Vocab)):
		return s.errorf("unknown", "%d is outside the vocabulary of %d tokens", *m.Unk, len(m.Vocab))
	}
	s.unk = int32(*m.Unk)
	s.types[s.unk] = tokenkind.Unknown
	return nil
}

// numberTokens lays the vocabulary out by id. Ids may leave gaps, which are unused tokens, but not
// more of them than there are tokens.
func (s *spec) numberTokens(vocab map[string]int64, added []addedToken) error {
	top := int64(-1)
	for _, id := range vocab {
		top = max(top, id)
	}
	for _, a := range added {
		top = max(top, a.ID)
	}
	if n := int64(len(vocab) + len(added)); top >= maxTokens || top > 2*n+1024 {
		return s.errorf("tokens", "the highest id is %d, with only %d tokens", top, n)
	}
	s.tokens = make([]string, top+1)
	s.types = make([]int32, top+1)
	s.attrs = map[int32]attr{}
	put := func(field, text string, id int64, ty int32) error {
		switch {
		case id < 0:
			return s.errorf(field, "%q has the id %d", text, id)
		case s.types[id] != 0 && s.tokens[id] != text:
			return s.errorf(field, "%q and %q have the same id %d", s.tokens[id], text, id)
		}
		s.tokens[id], s.types[id] = text, ty
		return nil
	}
	for text, id := range vocab {
		if err := put("tokens", text, id, tokenkind.Normal); err != nil {
			return err
		}
	}
	for _, a := range added {
		if id, ok := vocab[a.Content]; ok && id != a.ID {
			return s.errorf("added_tokens", "%q has the id %d, and %d in model.vocab", a.Content, a.ID, id)
		}
		ty := tokenkind.UserDefined
		if a.Special {
			ty = tokenkind.Control
		}
		if err := put("added_tokens", a.Content, a.ID, ty); err != nil {
			return err
		}
		var at attr
		for _, x := range []struct {
			on  bool
			bit attr
		}{{a.LStrip, attrLeft}, {a.RStrip, attrRight}, {a.SingleWord, attrWord}, {a.Normalized, attrNormalized}} {
			if x.on {
				at |= x.bit
			}
		}
		if at != 0 {
			s.attrs[int32(a.ID)] = at
		}
	}
	for i := range s.types {
		if s.types[i] == 0 {
			s.types[i] = tokenkind.Unused
		}
	}
	return nil
}
