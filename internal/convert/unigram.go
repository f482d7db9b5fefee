package convert

import (
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/grovellm/grove/gguf"
	"github.com/grovellm/grove/internal/files/ggufkeys"
	"github.com/grovellm/grove/internal/files/tokenkind"
	"github.com/grovellm/grove/internal/inside/lower"
	"github.com/grovellm/grove/tokenizer"
)

// hfNormalizer is a step of the normalizer, with the fields that the conversion needs.
type hfNormalizer struct {
	Type     string
	Steps    []hfNormalizer `json:"normalizers"`
	Charsmap []byte         `json:"precompiled_charsmap"`
	Pattern  struct{ String string }
	Content  string
}

// normalizer reads the normalizer.
func (f *hfTokens) normalizer() (n hfNormalizer, err error) {
	if len(f.Normalizer) > 0 {
		err = json.Unmarshal(f.Normalizer, &n)
	}
	if err != nil {
		return n, fmt.Errorf("normalizer: %w", err)
	}
	return n, nil
}

// lastReplaced returns the text that the normalizer's last step replaces everywhere, or "" if it replaces none.
func (f *hfTokens) lastReplaced() (string, error) {
	n, err := f.normalizer()
	for err == nil && n.Type == "Sequence" && len(n.Steps) > 0 {
		n = n.Steps[len(n.Steps)-1]
	}
	text := n.Pattern.String
	if n.Type != "Replace" || n.Content == "" || strings.ContainsAny(n.Content, text) {
		return "", err
	}
	return text, err
}

// charsmap returns SentencePiece's precompiled character map, or nil if there is none.
func (n *hfNormalizer) charsmap() []byte {
	for _, st := range n.Steps {
		if m := st.charsmap(); m != nil {
			return m
		}
	}
	return n.Charsmap
}

// setUnigram sets the keys of a Unigram model in addition to its tokens. The comparison of the
// tokenizers reveals settings that GGUF cannot express.
func setUnigram(w *gguf.Writer, tok *tokenizer.Tokenizer, file *hfTokens, tokens int) (notes []string, err error) {
	var vocab [][]any
	if err := json.Unmarshal(file.Model.Vocab, &vocab); err != nil {
		return nil, fmt.Errorf("model.vocab: %w", err)
	}
	steps, err := file.normalizer()
	if err != nil {
		return nil, err
	}
	scores, rounded := make([]float32, tokens), false
	for i, p := range vocab {
		x := p[1].(float64) // package tokenizer has checked it
		scores[i] = float32(x)
		rounded = rounded || float64(scores[i]) != x
	}
	if rounded {
		notes = append(notes, "the scores of the tokenizer's pieces are rounded to 32 bits")
	}
	w.Set("tokenizer.ggml.model", "t5")
	w.Set("tokenizer.ggml.pre", "default")
	w.Set("tokenizer.ggml.scores", scores)
	w.Set("tokenizer.ggml.add_space_prefix", startsWithSpace(tok))
	ids := func(text string) []int32 { return tok.Encode(text, tokenizer.EncodeOptions{}) }
	merge := slices.Equal(ids("a  b"), ids("a b"))
	w.Set("tokenizer.ggml.remove_extra_whitespaces", merge)
	if merge {
		notes = append(notes, "in GGUF a text that begins with the character ▁ gets one more in front")
	}
	if m := steps.charsmap(); m != nil {
		w.Set("tokenizer.ggml.precompiled_charsmap", m)
	}
	return notes, nil
}

// unigramFields sets the fields of tokenizer.json that only Unigram models have.
func unigramFields(f *gguf.File, tok *tokenizer.Tokenizer, file fields) error {
	k := ggufkeys.Of(f)
	scores := k.Floats("tokenizer.ggml.scores")
	charsmap := k.Ints("tokenizer.ggml.precompiled_charsmap", nil)
	front := k.Bool("tokenizer.ggml.add_space_prefix", false)
	merge := k.Bool("tokenizer.ggml.remove_extra_whitespaces", false)
	if err := k.Err(); err != nil {
		return err
	}
	lowest := math.Inf(1)
	for id, x := range scores {
		if lower.TokenKind(tok, int32(id)) == tokenkind.Normal {
			lowest = min(lowest, float64(x))
		}
	}
	n := int32(tok.VocabSize())
	for n > 0 && lower.TokenKind(tok, n-1) == tokenkind.Unused {
		n--
	}
	vocab, withBytes := make([]any, n), false
	for id := range n {
		score := max(float64(scores[id]), lowest) // a lower score would change that of unknown characters
		if lower.TokenKind(tok, id) == tokenkind.Unused || math.IsInf(score, 0) {
			return fmt.Errorf("%s: key \"tokenizer.ggml.tokens\": token %d is not a piece, and tokenizer.json cannot leave it out", f.Path, id)
		}
		vocab[id] = []any{tok.Text(id), score}
		withBytes = withBytes || lower.TokenKind(tok, id) == tokenkind.Byte
	}
	file["model"] = fields{"type": "Unigram", "unk_id": lower.SpecialsOf(tok).UNK, "vocab": vocab,
		"byte_fallback": withBytes}
	var steps []fields
	if len(charsmap) > 0 {
		blob := make([]byte, len(charsmap))
		for i, b := range charsmap {
			blob[i] = byte(b)
		}
		steps = append(steps, fields{"type": "Precompiled", "precompiled_charsmap": blob})
	}
	metaspace := fields{"type": "Metaspace", "replacement": "▁", "prepend_scheme": "always", "split": true}
	file["pre_tokenizer"], file["decoder"] = nil, metaspace
	switch spaces := (fields{"type": "Replace", "pattern": fields{"String": " "}, "content": "▁"}); {
	case merge:
		file["pre_tokenizer"] = metaspace
		steps = append(steps, fields{"type": "Strip", "strip_left": false, "strip_right": true},
			fields{"type": "Replace", "pattern": fields{"Regex": " {2,}"}, "content": "▁"})
	case front:
		steps = append(steps, fields{"type": "Prepend", "prepend": "▁"}, spaces)
	default:
		file["decoder"] = fields{"type": "Metaspace", "replacement": "▁", "prepend_scheme": "never", "split": true}
		steps = append(steps, spaces)
	}
	file["normalizer"] = fields{"type": "Sequence", "normalizers": steps}
	return nil
}
