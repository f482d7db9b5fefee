package convert

import (
	"encoding/json"
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"github.com/grovellm/grove/gguf"
	"github.com/grovellm/grove/internal/files/tokenkind"
	"github.com/grovellm/grove/internal/inside/lower"
	"github.com/grovellm/grove/tokenizer"
	"golang.org/x/text/unicode/norm"
)

// hfTokens is the data of tokenizer.json that package tokenizer does not provide.
type hfTokens struct {
	Normalizer   json.RawMessage `json:"normalizer"`
	PreTokenizer *hfStep         `json:"pre_tokenizer"`
	Model        struct {
		Type   string
		Vocab  json.RawMessage
		Merges []json.RawMessage `json:"merges"`
	} `json:"model"`
}

type hfStep struct {
	Type    string   `json:"type"`
	Steps   []hfStep `json:"pretokenizers"`
	Pattern struct{ String string }
}

// setTokenizer sets the keys tokenizer.* from a Hugging Face folder; vocab is the embedding's rows. It returns notes.
func setTokenizer(w *gguf.Writer, dir string, tok *tokenizer.Tokenizer, vocab int) ([]string, error) {
	b, err := lower.TokenizerJSON(dir)
	if err != nil {
		return nil, err
	}
	path := filepath.Join(dir, lower.TokenizerFile(dir))
	var file hfTokens
	if err := json.Unmarshal(b, &file); err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	merges, err := file.merges()
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	var notes []string
	if strings.Contains(string(file.Normalizer), `"NFC"`) {
		notes = append(notes, "GGUF has no place for the tokenizer's NFC normalisation: text with combining characters may be encoded otherwise")
	}
	pre, err := lower.PreTokenizerName(tok)
	if err == nil && pre == "" {
		err = file.checkSteps()
	}
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	texts, kinds := tokenTexts(tok, vocab)
	switch {
	case file.Model.Type == "Unigram":
		more, err := setUnigram(w, tok, &file, len(texts))
		if err != nil {
			return nil, fmt.Errorf("%s: %w", path, err)
		}
		notes = append(notes, more...)
	case pre != "":
		w.Set("tokenizer.ggml.model", "gpt2")
		w.Set("tokenizer.ggml.pre", pre)
		w.Set("tokenizer.ggml.merges", joinPairs(merges))
	default:
		w.Set("tokenizer.ggml.model", "llama")
		w.Set("tokenizer.ggml.pre", "default")
		w.Set("tokenizer.ggml.scores", scores(texts, kinds, merges))
		w.Set("tokenizer.ggml.add_space_prefix", startsWithSpace(tok))
	}
	w.Set("tokenizer.ggml.tokens", texts)
	w.Set("tokenizer.ggml.token_type", kinds)
	special, err := readSpecial(dir, tok)
	if err != nil {
		return nil, err
	}
	setSpecial(w, tok, special)
	return notes, nil
}

// startsWithSpace reports whether the tokenizer puts a space before a text.
func startsWithSpace(tok *tokenizer.Tokenizer) bool {
	ids := tok.Encode("x", tokenizer.EncodeOptions{})
	return len(ids) > 0 && strings.HasPrefix(tok.Text(ids[0]), "▁")
}

func (f *hfTokens) merges() ([][2]string, error) {
	out := make([][2]string, len(f.Model.Merges))
	for i, raw := range f.Model.Merges {
		var line string
		if json.Unmarshal(raw, &out[i]) == nil {
			continue
		}
		if err := json.Unmarshal(raw, &line); err != nil {
			return nil, fmt.Errorf("model.merges: entry %d: %w", i, err)
		}
		a, b, ok := strings.Cut(line, " ")
		if !ok {
			return nil, fmt.Errorf("model.merges: entry %d, %q, is not a pair", i, line)
		}
		out[i] = [2]string{a, b}
	}
	return out, nil
}

// checkSteps refuses a pre-tokenizer of SentencePiece's kind that GGUF has no place for.
func (f *hfTokens) checkSteps() error {
	var steps []hfStep
	if p := f.PreTokenizer; p != nil {
		steps = append(steps, *p)
		if p.Type == "Sequence" {
			steps = p.Steps
		}
	}
	replaced, err := f.lastReplaced()
	if err != nil {
		return err
	}
	for _, st := range steps {
		switch {
		case st.Type == "Split" && st.Pattern.String != "" && st.Pattern.String == replaced: // the text has none
		case st.Type == "Metaspace" || st.Type == "WhitespaceSplit" && f.Model.Type == "Unigram":
		default:
			return fmt.Errorf("pre_tokenizer: step %s has no counterpart in GGUF that grove knows", st.Type)
		}
	}
	return nil
}

// tokenTexts lists the tokens as in GGUF, padded with unused ones to the embedding's size.
func tokenTexts(tok *tokenizer.Tokenizer, vocab int) (texts []string, kinds []int32) {
	for id := range int32(vocab) {
		text, kind := tok.Text(id), lower.TokenKind(tok, id)
		if text == "" || kind == tokenkind.Unused || kind == 0 {
			text, kind = fmt.Sprintf("[PAD%d]", id), tokenkind.Unused
		}
		texts, kinds = append(texts, text), append(kinds, int32(kind))
	}
	return texts, kinds
}

// scores expresses the order in which pieces are merged as SentencePiece's scores: the earlier a
// piece is made, the higher its score.
func scores(texts []string, kinds []int32, merges [][2]string) []float32 {
	rank := map[string]int{}
	for _, m := range merges {
		made := m[0] + m[1]
		if _, ok := rank[made]; !ok {
			rank[made] = len(rank) + 1
		}
	}
	out := make([]float32, len(texts))
	for i, t := range texts {
		if kinds[i] != int32(tokenkind.Normal) {
			continue
		}
		r, ok := rank[t]
		if !ok {
			r = len(rank) + 1 // a character: no merge makes it
		}
		out[i] = -float32(r)
	}
	return out
}

// probes are texts that tokenizers with different rules split differently.
var probes = []string{
	"Hello, world!", " leading and trailing  ", "it's John's, I'LL say we've DON'T",
	"x = y+1;\n\n\tif (a[i] != 0x1F) {\r\n\t\treturn\n}\n",
	"12345678 3.14159 1,000,000", "naïve café Straße Ǆ ſ", "東京 日本語。こんにちは 안녕하세요", "привет мир نص عربي हिन्दी",
	"e\u0301 \u00a0\u2003 \u200b",
	"😀👩‍👩‍👧 ½ ² Ⅳ ٣", "a\nb\n\n\nc   d\t\te", "<s> <|endoftext|> <unk> [INST]", "\u2581 ▁▁x", "", "...!?--==>>",
}

// sameTokens checks that two tokenizers of one of GGUF's kinds agree, on text in normal form C. Tokenizers of Unigram
// models need not agree on text that begins with ▁.
func sameTokens(a, b *tokenizer.Tokenizer, kind string) error {
	texts, unigram := probes, kind == "t5"
	if unigram { // some add a space only before the first text
		texts = append(slices.Clip(probes), "x"+a.Text(a.EOS())+"x")
	}
	if kind == "gpt2" { // a word that is a token may be that token whatever merges say
		texts = slices.Clip(probes)
		for id := range int32(a.VocabSize()) {
			texts = append(texts, a.Piece(id))
		}
	}
	for _, text := range texts {
		text = norm.NFC.String(text)
		if unigram {
			text = strings.TrimLeft(text, "▁")
		}
		for _, o := range []tokenizer.EncodeOptions{{}, {AddSpecial: true, ParseSpecial: true}} {
			x, y := a.Encode(text, o), b.Encode(text, o)
			if !slices.Equal(x, y) {
				return fmt.Errorf("the converted tokenizer differs: it encodes %q as %v, the original as %v", text, y, x)
			}
		}
	}
	return nil
}
