package tokenizer

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/grovellm/grove/gguf"
	"github.com/grovellm/grove/internal/files/tokenkind"
	"github.com/grovellm/grove/internal/testing/hostile"
)

const (
	maxText = 1 << 16 // most bytes of a text that the fuzzers encode
	maxFile = 1 << 20 // most bytes of a file that they make
)

// checkUse reads a tokenizer, encodes a text and decodes its ids, within memory limits. Ids must be
// in the vocabulary, and their number is bounded by the text.
func checkUse(t testing.TB, size int, text string, read func() (*Tokenizer, error)) {
	t.Helper()
	text = text[:min(len(text), maxText)]
	hostile.Check(t, size+len(text), func() {
		tok, err := read()
		if err != nil {
			return
		}
		for _, o := range []EncodeOptions{{}, {AddSpecial: true, ParseSpecial: true, shield: "\ufdd0"}} {
			ids := tok.Encode(text, o)
			if len(ids) > maxGrowth*(len(text)+1)+2*maxAround {
				t.Fatalf("%d bytes give %d ids", len(text), len(ids))
			}
			if least := tok.least(text); least > len(ids) && !strings.Contains(text, "\ufdd0") {
				t.Fatalf("%.60q gives %d ids: want at least %d", text, len(ids), least)
			}
			for _, id := range ids {
				if !tok.has(id) {
					t.Fatalf("%.60q gives the id %d of %d", text, id, tok.VocabSize())
				}
			}
			tok.Decode(ids[:min(len(ids), maxText)], DecodeOptions{Special: true})
		}
	})
}

// FuzzFromJSON: whatever the bytes, an error or a tokenizer that keeps to its vocabulary.
func FuzzFromJSON(f *testing.F) {
	base, err := os.ReadFile("testdata/char.json")
	if err != nil {
		f.Fatal(err)
	}
	f.Add(base, "Hello  world\n")
	f.Add([]byte(`{"model":{"type":"BPE","vocab":{"a":0,"<unk>":1},"merges":["a a"],"unk_token":"<unk>"},"pre_tokenizer":{"type":"ByteLevel"}}`),
		strings.Repeat(" a", 40))
	f.Add(unigramJSONFile(f), "the trainíng\xff ﷺ")
	f.Add([]byte(`{"added_tokens":[{"id":0,"content":"x","lstrip":true,"rstrip":true,"single_word":true,"normalized":true}],
		"normalizer":{"type":"Sequence","normalizers":[{"type":"NFC"},{"type":"Prepend","prepend":"x"}]},
		"pre_tokenizer":{"type":"Metaspace","replacement":"▁"},"decoder":{"type":"Metaspace","replacement":"▁"},
		"model":{"type":"BPE","vocab":{"x":0,"y":1},"merges":[],"unk_token":"y","fuse_unk":true}}`), "the \xff 中文 e\u0301 x ▁x")
	f.Fuzz(func(t *testing.T, b []byte, text string) {
		checkUse(t, len(b), text, func() (*Tokenizer, error) { return parse(files{Name: "fuzz", Tokenizer: b}) })
	})
}

// recipe is bytes that stand for a tokenizer: fuzzing it reaches valid tokenizers, which
// random JSON bytes rarely are.
type recipe struct {
	rest []byte
	made int // bytes of text so far
}

func (r *recipe) next() int {
	if len(r.rest) == 0 {
		return 0
	}
	b := r.rest[0]
	r.rest = r.rest[1:]
	return int(b)
}

// text returns up to 2^15 bytes: a short text, repeated. Once there is much text, it returns short ones.
func (r *recipe) text() string {
	words := []string{"a", " ", "▁", "b", "ab", "\n", "é", "<s>", "a a", "▁a", "x", "\u1d160", "中", "▁▁", "0", ""}
	n := r.next()
	if r.made > maxFile/4 {
		n &= 15
	}
	text := strings.Repeat(words[n&15], 1<<(n>>4))
	r.made += len(text)
	return text
}

// texts returns a text of at most maxText bytes.
func (r *recipe) texts() string {
	text := ""
	for len(r.rest) > 0 && len(text) < maxText {
		text += r.text()
	}
	return text
}

func (r *recipe) list(most int, one func() any) []any {
	list := []any{}
	for range r.next() % (most + 1) {
		list = append(list, one())
	}
	return list
}

// steps returns a Sequence of pipeline steps of a kind.
func (r *recipe) steps(name string, kinds ...string) obj {
	repeat, first := 1<<max(0, r.next()%16-6), true
	list := r.list(6, func() any {
		step := obj{"type": kinds[r.next()%len(kinds)]}
		if first && name == "pretokenizers" {
			step["type"] = kinds[0]
		} else if step["type"] == "ByteLevel" || step["type"] == "Metaspace" {
			step["type"] = "Digits"
		}
		first = false
		switch step["type"] {
		case "Prepend":
			step["prepend"] = r.text()
		case "Replace":
			step["pattern"], step["content"] = obj{"String": r.text()}, r.text()
		case "Precompiled":
			step["precompiled_charsmap"] = makeCharsmap(map[string]string{"a": r.text(), "e\u0301": "é"})
		case "Split":
			step["pattern"] = obj{"String": r.text()}
			step["behavior"] = []string{"Isolated", "MergedWithPrevious"}[r.next()%2]
		case "Metaspace":
			step["replacement"] = "▁"
			step["prepend_scheme"] = []string{"always", "first", "never"}[r.next()%3]
		case "ByteLevel":
			step["add_prefix_space"], step["use_regex"] = r.next()%2 == 0, r.next()%2 == 0
		case "Digits":
			step["individual_digits"] = r.next()%2 == 0
		case "Punctuation":
			step["behavior"] = "Contiguous"
		case "Strip":
			step["strip_left"], step["strip_right"] = r.next()%2 == 0, r.next()%2 == 0
		}
		return step
	})
	var all []any
	for range repeat {
		all = append(all, list...)
	}
	return obj{"type": "Sequence", name: all}
}

// json returns a tokenizer.json.
func (r *recipe) json() []byte {
	vocab, next := map[string]int{}, 0
	add := func(text string) {
		if _, ok := vocab[text]; !ok {
			vocab[text] = next
			next++
		}
	}
	byteLevel := r.next()%2 == 0
	add("<unk>")
	for b := range 256 {
		if byteLevel {
			add(string(byteRune[b]))
		} else {
			add(fmt.Sprintf("<0x%02X>", b))
		}
	}
	r.list(20, func() any { add(r.text()); return nil })
	pieceCount := len(vocab)
	merges := r.list(20, func() any { return []string{"a" + r.text(), "b" + r.text()} })
	added := r.list(8, func() any {
		text, flags := r.text(), r.next()
		id, ok := vocab[text]
		if !ok {
			id = next
			next++
		}
		return obj{"id": id, "content": text, "special": flags&1 != 0, "lstrip": flags&2 != 0, "rstrip": flags&4 != 0,
			"single_word": flags&8 != 0, "normalized": flags&16 != 0}
	})
	model := obj{"type": "BPE", "vocab": vocab, "merges": merges, "unk_token": "<unk>", "fuse_unk": r.next()%2 == 0,
		"byte_fallback": !byteLevel, "ignore_merges": r.next()%2 == 0}
	if !byteLevel && r.next()%2 == 0 {
		pieces := make([]any, pieceCount)
		for text, id := range vocab {
			pieces[id] = []any{text, -(id * r.next()) % 17}
		}
		model = obj{"type": "Unigram", "vocab": pieces, "unk_id": 0, "byte_fallback": r.next()%2 == 0}
	}
	file := obj{
		"model": model, "added_tokens": added,
		"normalizer": r.steps("normalizers", "NFC", "NFD", "NFKC", "NFKD", "Prepend", "Replace", "Precompiled", "Strip"),
	}
	if byteLevel {
		file["pre_tokenizer"] = r.steps("pretokenizers", "ByteLevel", "Split", "Digits", "Punctuation")
	} else {
		file["pre_tokenizer"] = r.steps("pretokenizers", "Metaspace", "Split", "Digits", "Punctuation")
		file["decoder"] = obj{"type": "Sequence", "decoders": []any{
			obj{"type": "Replace", "pattern": obj{"String": "▁"}, "content": " "}, obj{"type": "ByteFallback"},
			obj{"type": "Fuse"},
			obj{"type": "Strip", "content": " ", "start": 1, "stop": 0},
		}}
	}
	if n := r.next(); n%2 == 0 {
		around, ids := []any{}, make([]int, 1<<(n/2%16))
		for range 1 << (r.next() % 14) {
			around = append(around, obj{"SpecialToken": obj{"id": "s"}})
		}
		file["post_processor"] = obj{"type": "TemplateProcessing", "single": append(around, obj{"Sequence": obj{"id": "A"}}),
			"special_tokens": obj{"s": obj{"id": "s", "ids": ids}}}
	}
	b, err := json.Marshal(file)
	if err != nil {
		panic(err)
	}
	return b
}

// FuzzPipeline: the same for tokenizers whose parts are each valid.
func FuzzPipeline(f *testing.F) {
	for i := range 40 {
		r := bytes.Repeat([]byte{byte(i), byte(7 * i), byte(13 * i), 3}, 10+i)
		f.Add(r, []byte{byte(i), byte(0xf0 + i)})
	}
	f.Fuzz(func(t *testing.T, data, texts []byte) {
		r, words := recipe{rest: data}, recipe{rest: texts}
		file := r.json()
		text := words.texts()
		if len(file) > maxFile {
			return
		}
		checkUse(t, len(file), text, func() (*Tokenizer, error) { return parse(files{Name: "fuzz", Tokenizer: file}) })
	})
}

// gguf returns a GGUF file with a tokenizer's keys.
func (r *recipe) gguf() []byte {
	w := new(gguf.Writer)
	kind := []string{"llama", "gpt2", "t5"}[r.next()%3]
	w.Set("tokenizer.ggml.model", kind)
	w.Set("tokenizer.ggml.pre", []string{"gpt-2", "llama-bpe", "deepseek-llm", "falcon", "viking", "tekken",
		"", "?"}[r.next()%8])
	tokens := []string{"<unk>"}
	for b := range 256 {
		if kind != "gpt2" {
			tokens = append(tokens, fmt.Sprintf("<0x%02X>", b))
		} else {
			tokens = append(tokens, string(byteRune[b]))
		}
	}
	types := make([]int32, len(tokens))
	for i := range types {
		types[i] = int32(tokenkind.Normal)
		if kind != "gpt2" {
			types[i] = int32(tokenkind.Byte)
		}
	}
	types[0] = int32(tokenkind.Unknown)
	seen := map[string]bool{}
	r.list(40, func() any {
		text := r.text()
		ty := []int32{1, 1, 1, 3, 4, 5, 6, 1}[r.next()%8]
		step := r.next()
		for n := range 1 << (step % 10) { // texts with a common beginning
			r.made += len(text) + n
			if r.made > maxFile/4 {
				break
			}
			text := text + strings.Repeat("a", n)
			if kind == "t5" && seen[text] {
				continue
			}
			seen[text] = true
			tokens, types = append(tokens, text), append(types, ty)
		}
		return nil
	})
	scores := make([]float32, len(tokens))
	for i := range scores {
		scores[i] = float32((i * r.next()) % 17)
	}
	merges := []string{"a b"}
	r.list(20, func() any { merges = append(merges, r.text()+" "+r.text()); return nil })
	w.Set("tokenizer.ggml.tokens", tokens)
	w.Set("tokenizer.ggml.token_type", types)
	w.Set("tokenizer.ggml.scores", scores)
	w.Set("tokenizer.ggml.merges", merges)
	if kind == "t5" {
		w.Set("tokenizer.ggml.remove_extra_whitespaces", r.next()%2 == 0)
		w.Set("tokenizer.ggml.unknown_token_id", uint32(0))
		from := "a" + r.text()
		w.Set("tokenizer.ggml.precompiled_charsmap",
			makeCharsmap(map[string]string{from[:min(len(from), 8)]: r.text(), "é": " "}))
	}
	for _, name := range []string{"bos", "eos", "unknown", "eot"} {
		if n := r.next(); n%2 == 0 && !(kind == "t5" && name == "unknown") {
			w.Set("tokenizer.ggml."+name+"_token_id", uint32(n))
		}
	}
	w.Set("tokenizer.ggml.add_bos_token", r.next()%2 == 0)
	w.Set("tokenizer.ggml.add_space_prefix", r.next()%2 == 0)
	w.Set("general.name", []string{"", "Phi-3"}[r.next()%2])
	var b bytes.Buffer
	if _, err := w.WriteTo(&b); err != nil {
		return nil
	}
	return b.Bytes()
}

// FuzzFromGGUF: the same for the keys of GGUF files.
func FuzzFromGGUF(f *testing.F) {
	for i := range 40 {
		r := bytes.Repeat([]byte{byte(i), byte(7 * i), byte(13 * i), 1}, 10+i)
		f.Add(r, []byte{byte(i), byte(0xf0 + i)})
	}
	f.Fuzz(func(t *testing.T, data, texts []byte) {
		r, words := recipe{rest: data}, recipe{rest: texts}
		file := r.gguf()
		if len(file) > maxFile {
			return
		}
		text := words.texts()
		checkUse(t, len(file), text, func() (*Tokenizer, error) {
			g, err := gguf.Parse("fuzz.gguf", file)
			if err != nil {
				return nil, err
			}
			return FromGGUF(g)
		})
	})
}

// Files that once took unbounded memory or time are refused, with the name of the field.
func TestUnbounded(t *testing.T) {
	base, err := os.ReadFile("testdata/char.json")
	if err != nil {
		t.Fatal(err)
	}
	repeat := func(n int, x any) (list []any) {
		for range n {
			list = append(list, x)
		}
		return list
	}
	replace := obj{"type": "Replace", "pattern": obj{"String": "a"}, "content": "aa"}
	long := strings.Repeat("x", maxSpecial+1)
	text := strings.Repeat("a ", maxText/2)
	for _, c := range []struct {
		field string
		patch obj
	}{
		{"normalizer", obj{"normalizer": obj{"type": "Sequence", "normalizers": repeat(9, replace)}}},
		{"normalizer", obj{"normalizer": obj{"type": "Replace", "pattern": obj{"String": "a"},
			"content": strings.Repeat("a", 1000)}}},
		{"normalizer", obj{"normalizer": obj{"type": "Prepend", "prepend": strings.Repeat("a", 1000)},
			"added_tokens": []any{obj{"id": 400, "content": " "}}}},
		{"normalizer", obj{"normalizer": obj{"type": "Sequence", "normalizers": repeat(5000, obj{"type": "NFC"})}}},
		{"post_processor", obj{"post_processor": obj{"type": "TemplateProcessing",
			"single":         append(repeat(2000, obj{"SpecialToken": obj{"id": "s"}}), obj{"Sequence": obj{"id": "A"}}),
			"special_tokens": obj{"s": obj{"id": "s", "ids": make([]int, 20_000)}}}}},
		{"model.vocab", obj{"added_tokens": []any{obj{"id": 400, "content": long, "special": true}}}},
	} {
		file := patched(t, base, c.patch)
		read := func() (*Tokenizer, error) { return parse(files{Name: "x", Tokenizer: file}) }
		checkUse(t, len(file), text, read)
		if _, err := read(); err == nil || !strings.Contains(err.Error(), "json: "+c.field) || len(err.Error()) > 2*maxMessage {
			t.Errorf("%s: %.200v", c.field, err)
		}
	}
	letters := func(n int, alphabet string) (list []string) {
		for _, a := range alphabet {
			for i := range n {
				list = append(list, strings.Repeat(string(a), i+1))
			}
		}
		return list
	}
	for _, tokens := range [][]string{{"a", strings.Repeat("b", maxPiece+1)}, letters(1000, "abcd")} {
		s := testSpec(sentencePiece)
		s.tokens, s.scores = tokens, make([]float64, len(tokens))
		size := 0
		for _, x := range tokens {
			size += len(x)
		}
		hostile.Check(t, size, func() { _, err = build(s) })
		if err == nil || !strings.Contains(err.Error(), "tokens: ") {
			t.Errorf("%d pieces: %v", len(tokens), err)
		}
	}
}
