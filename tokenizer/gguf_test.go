package tokenizer

import (
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/grovellm/grove/gguf"
	"github.com/grovellm/grove/internal/files/tokenkind"
)

type meta map[string]any

func writeGGUF(t *testing.T, m meta) *gguf.File {
	t.Helper()
	w := new(gguf.Writer)
	for k, v := range m {
		w.Set(k, v)
	}
	path := filepath.Join(t.TempDir(), "tok.gguf")
	if err := w.WriteFile(path); err != nil {
		t.Fatal(err)
	}
	f, err := gguf.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { f.Close() })
	return f
}

func byteMeta() meta {
	s := bytesSpec(someMerges...)
	s.addToken("<|im_end|>", tokenkind.Control, 0)
	s.addToken("<|endoftext|>", tokenkind.Normal, 0)
	types := make([]int32, len(s.types))
	for i, ty := range s.types {
		types[i] = int32(ty)
	}
	var merges []string
	for _, m := range s.merges {
		merges = append(merges, m[0]+" "+m[1])
	}
	return meta{
		"tokenizer.ggml.model": "gpt2", "tokenizer.ggml.pre": "gpt-2", "tokenizer.ggml.tokens": s.tokens,
		"tokenizer.ggml.token_type": types, "tokenizer.ggml.merges": merges,
		"tokenizer.ggml.eos_token_id": uint32(len(types) - 2),
		"tokenizer.chat_template":     "T", "tokenizer.chat_templates": []string{"tool_use"},
		"tokenizer.chat_template.tool_use": "U",
	}
}

func TestFromGGUF(t *testing.T) {
	tok, err := FromGGUF(writeGGUF(t, byteMeta()))
	if err != nil {
		t.Fatal(err)
	}
	n := int32(tok.VocabSize())
	if tok.EOS() != n-2 || tok.BOS() != -1 || tok.AddBOS() || !slices.Equal(tok.eog, []int32{n - 2, n - 1}) {
		t.Error(tok.EOS(), tok.BOS(), tok.AddBOS(), tok.eog)
	}
	// <|endoftext|> was marked as plain text, but its name says that it is not.
	if tok.kind(n-1) != tokenkind.Control || !tok.IsSpecial(n-1) || tok.kind(n) != 0 || tok.Piece(n) != "" ||
		tok.Text(-1) != "" {
		t.Error(tok.kind(n-1), tok.kind(n))
	}
	if got := tok.Templates(); !maps.Equal(got, map[string]string{"default": "T", "tool_use": "U"}) {
		t.Error(got)
	}
	if id, ok := tok.Find(" the"); !ok || tok.Piece(id) != " the" || tok.Text(id) != "Ġthe" {
		t.Error(id, ok, tok.Text(id))
	}
	if id, ok := tok.Find("<|im_end|>"); !ok || id != n-2 {
		t.Error(id, ok)
	}
	m := byteMeta()
	delete(m, "tokenizer.ggml.pre")
	if tok, err := FromGGUF(writeGGUF(t, m)); err != nil || len(tok.Notes()) != 1 {
		t.Error("a missing pre-tokenizer is not noted:", err)
	}
	m = byteMeta()
	m["tokenizer.ggml.add_bos_token"] = true
	m["tokenizer.ggml.bos_token_id"] = uint32(n - 1)
	m["tokenizer.ggml.padding_token_id"] = uint32(1<<32 - 1)
	if tok, err = FromGGUF(writeGGUF(t, m)); err != nil || !tok.AddBOS() ||
		tok.Encode("", EncodeOptions{AddSpecial: true})[0] != n-1 || tok.pad != -1 {
		t.Error("BOS is not added:", err)
	}
}

func TestGGUFErrors(t *testing.T) {
	for _, c := range []struct {
		key  string
		val  any // nil: the key is left out
		want string
	}{
		{"tokenizer.ggml.model", "rwkv", `tokenizer.ggml.model: tokenizer model "rwkv" is not known`},
		{"tokenizer.ggml.model", "t5", "tokenizer.ggml.scores: 0 entries"},
		{"tokenizer.ggml.model", nil, "tokenizer.ggml.model"},
		{"tokenizer.ggml.pre", "superbpe", `tokenizer.ggml.pre: pre-tokenizer "superbpe" is not known`},
		{"tokenizer.ggml.tokens", nil, "tokenizer.ggml.tokens"},
		{"tokenizer.ggml.tokens", []string{"a", "b"}, "tokenizer.ggml.eos_token_id: 272 is outside the vocabulary of 2 tokens"},
		{"tokenizer.ggml.tokens", []string{}, "tokenizer.ggml.tokens: the vocabulary is empty"},
		{"tokenizer.ggml.token_type", []int32{1, 2}, "tokenizer.ggml.token_type: 2 entries"},
		{"tokenizer.ggml.token_type", []int32{1, 77}, "entry 1 is 77"},
		{"tokenizer.ggml.token_type", "x", "tokenizer.ggml.token_type"},
		{"tokenizer.ggml.merges", nil, "tokenizer.ggml.merges: missing"},
		{"tokenizer.ggml.merges", []string{"ab"}, `entry 0, "ab"`},
		{"tokenizer.ggml.merges", []string{"a b", " "}, `entry 1, " "`},
		{"tokenizer.ggml.eos_token_id", uint32(99999), "tokenizer.ggml.eos_token_id: 99999 is outside"},
		{"tokenizer.ggml.bos_token_id", "x", "tokenizer.ggml.bos_token_id"},
		{"tokenizer.ggml.add_bos_token", uint32(1), "tokenizer.ggml.add_bos_token"},
	} {
		m := byteMeta()
		m[c.key] = c.val
		if c.val == nil {
			delete(m, c.key)
		}
		if _, err := FromGGUF(writeGGUF(t, m)); err == nil || !strings.Contains(err.Error(), c.want) ||
			!strings.Contains(err.Error(), "tok.gguf") {
			t.Errorf("%s = %v: got error %v, want %s", c.key, c.val, err, c.want)
		}
	}
}

func TestGGUFSentencePiece(t *testing.T) {
	spm := smallSPM(t)
	types := make([]int32, len(spm.types))
	scores := make([]float32, len(spm.types))
	for i, ty := range spm.types {
		types[i] = int32(ty)
		if ty == tokenkind.Normal {
			scores[i] = -float32(i)
		}
	}
	m := meta{"tokenizer.ggml.model": "llama", "tokenizer.ggml.tokens": spm.text, "tokenizer.ggml.token_type": types,
		"tokenizer.ggml.scores": scores}
	tok, err := FromGGUF(writeGGUF(t, m))
	if err != nil {
		t.Fatal(err)
	}
	for _, text := range []string{"the word", "  in the  中文 </s>", "é\xff"} {
		ids, want := tok.Encode(text, EncodeOptions{AddSpecial: true}), append([]int32{1},
			spm.Encode(text, EncodeOptions{})...)
		if !slices.Equal(ids, want) || tok.Decode(ids, DecodeOptions{}) != text {
			t.Errorf("%q gives %v, want %v, and decodes to %q", text, ids, want, tok.Decode(ids, DecodeOptions{}))
		}
	}
	// A text that continues another keeps its first space; one that starts does not.
	id, _ := tok.Find("▁the")
	if tok.Decode([]int32{id}, DecodeOptions{}) != "the" ||
		tok.Decode([]int32{id}, DecodeOptions{Continue: true}) != " the" {
		t.Error("leading space")
	}
	m["tokenizer.ggml.add_space_prefix"] = false
	if tok, err = FromGGUF(writeGGUF(t, m)); err != nil ||
		tok.Decode(tok.Encode(" the", EncodeOptions{}), DecodeOptions{}) != " the" {
		t.Error("add_space_prefix:", err)
	}
	for key, bad := range map[string]any{"tokenizer.ggml.scores": []float32{1}, "tokenizer.ggml.token_type": []int32{1}} {
		old := m[key]
		m[key] = bad
		if _, err := FromGGUF(writeGGUF(t, m)); err == nil || !strings.Contains(err.Error(), key) {
			t.Errorf("%s: %v", key, err)
		}
		m[key] = old
	}
}

// Every key of a tokenizer that llama.cpp knows, if set to an unusual value, is refused by name,
// changes the tokenizer, or is one of the few that cannot.
func TestTokenizerKeysAreObeyedOrRefused(t *testing.T) {
	inert := strings.Fields(`token_type_count mask_token_id cls_token_id seperator_token_id fim_pre_token_id
		fim_suf_token_id fim_mid_token_id prefix_token_id suffix_token_id middle_token_id padding_token_id
		unknown_token_id`)
	values := map[string]any{
		"token_type_count": uint32(2), "add_bos_token": true, "add_eos_token": true, "add_sep_token": true,
		"remove_extra_whitespaces": true,
		"precompiled_charsmap":     []uint8{1, 2}, "suppress_tokens": []int32{5}, "normalizer.lowercase": true,
		"normalizer.strip_accents": true,
		"eos_token_ids":            []int32{7, 9}, "a_key_of_tomorrow": true, "byte_fallback": true, "pre": "llama-bpe",
	}
	for _, name := range append(inert,
		strings.Fields("bos_token_id eos_token_id eot_token_id eom_token_id fim_pad_token_id fim_rep_token_id fim_sep_token_id")...) {
		values[name] = uint32(9)
	}
	text := "the word 12345"
	special := EncodeOptions{AddSpecial: true}
	for name, v := range values {
		m := byteMeta()
		m["tokenizer.ggml.bos_token_id"] = uint32(3)
		plain, err := FromGGUF(writeGGUF(t, m))
		if err != nil {
			t.Fatal(err)
		}
		m["tokenizer.ggml."+name] = v
		tok, err := FromGGUF(writeGGUF(t, m))
		refused := err != nil && strings.Contains(err.Error(), "tokenizer.ggml."+name)
		same := err == nil && slices.Equal(tok.Encode(text, special), plain.Encode(text, special)) &&
			slices.Equal(tok.eog, plain.eog) && slices.Equal(tok.suppressed, plain.suppressed) &&
			tok.BOS() == plain.BOS()
		switch {
		case slices.Contains(inert, name):
			if !same {
				t.Errorf("%s = %v changes something: %v", name, v, err)
			}
		case !refused && (err != nil || same):
			t.Errorf("%s = %v is neither obeyed nor refused by its name: %v", name, v, err)
		}
	}
	m := byteMeta()
	for name, v := range map[string]any{"add_sep_token": false, "remove_extra_whitespaces": false,
		"suppress_tokens": []int32{}, "normalizer.lowercase": false} {
		m["tokenizer.ggml."+name] = v
	}
	if _, err := FromGGUF(writeGGUF(t, m)); err != nil {
		t.Errorf("neutral values: %v", err)
	}
	m["tokenizer.ggml.eos_token_ids"] = []int32{1 << 20}
	if _, err := FromGGUF(writeGGUF(t, m)); err == nil || !strings.Contains(err.Error(), "eos_token_ids") {
		t.Errorf("an id outside the vocabulary: %v", err)
	}
}

// Gemma 4's tokenizer merges characters, including ▁ for spaces, keeps line ends apart from other
// text, and spells characters without a token by bytes.
func TestGemma4Tokens(t *testing.T) {
	tokens := []string{"<pad>", "<eos>", "<bos>", "<unk>", "a", "b", "▁", "\n", "ab", "▁ab", "\n\n", "<turn|>", "a\n"}
	kinds := []int32{3, 3, 3, 2, 1, 1, 1, 1, 1, 1, 1, 4, 1}
	for b := range 256 {
		tokens, kinds = append(tokens, fmt.Sprintf("<0x%02X>", b)), append(kinds, 6)
	}
	tok, err := FromGGUF(writeGGUF(t, meta{
		"tokenizer.ggml.model": "gemma4", "tokenizer.ggml.tokens": tokens, "tokenizer.ggml.token_type": kinds,
		"tokenizer.chat_template": "{{ '<turn|>' }}", "tokenizer.ggml.merges": []string{"a b", "▁ ab", "\n \n", "a \n"},
	}))
	if err != nil {
		t.Fatal(err)
	}
	got := tok.Encode("ab ab a\n\n\né<turn|>", EncodeOptions{AddSpecial: true, ParseSpecial: true})
	want := []int32{2, 8, 9, 6, 4, 10, 7, 13 + 0xc3, 13 + 0xa9, 11}
	if !slices.Equal(got, want) {
		t.Errorf("tokens %v, want %v", got, want)
	}
	if text := tok.Decode(want[1:len(want)-1], DecodeOptions{}); text != "ab ab a\n\n\né" {
		t.Errorf("decoded as %q", text)
	}
	if !tok.IsEOG(11) || !tok.IsEOG(1) {
		t.Error("<turn|> and <eos> end a generation")
	}
}
