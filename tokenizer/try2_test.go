package tokenizer

import (
	"encoding/binary"
	"encoding/json"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/grovellm/grove/gguf"
	"github.com/grovellm/grove/internal/testdata"
)

func TestMkGGUF(t *testing.T) {
	for dir, pre := range map[string]string{"/tmp/tok/llama3": "llama-bpe", "/tmp/tok/qwen2": "qwen2"} {
		tok, err := FromJSON(dir)
		if err != nil {
			t.Fatal(err)
		}
		var file tokenizerJSON
		b, _ := os.ReadFile(dir + "/tokenizer.json")
		if err := json.Unmarshal(b, &file); err != nil {
			t.Fatal(err)
		}
		var m modelJSON
		if err := json.Unmarshal(file.Model, &m); err != nil {
			t.Fatal(err)
		}
		w := gguf.NewWriter()
		w.Set("general.architecture", "llama")
		w.Set("tokenizer.ggml.model", "gpt2")
		w.Set("tokenizer.ggml.pre", pre)
		texts := make([]string, tok.VocabSize())
		types := make([]int32, tok.VocabSize())
		for i := range texts {
			texts[i] = tok.Text(int32(i))
			if texts[i] == "" {
				texts[i] = "[PAD" + strconv.Itoa(i) + "]"
			}
			types[i] = int32(tok.Type(int32(i)))
		}
		var merges []string
		for _, p := range m.Merges {
			merges = append(merges, p[0]+" "+p[1])
		}
		w.Set("tokenizer.ggml.tokens", texts)
		w.Set("tokenizer.ggml.token_type", types)
		w.Set("tokenizer.ggml.merges", merges)
		w.Set("tokenizer.ggml.eos_token_id", uint32(tok.EOS()))
		w.Set("tokenizer.ggml.bos_token_id", uint32(tok.EOS()))
		if err := w.WriteFile("/tmp/tok/vocabs/ggml-vocab-" + pre + ".gguf"); err != nil {
			t.Fatal(err)
		}
	}
}

func TestDump(t *testing.T) {
	text, err := os.ReadFile(os.Getenv("TEXT"))
	if err != nil {
		t.Skip()
	}
	f, err := gguf.Open(os.Getenv("VOCAB"))
	if err != nil {
		t.Fatal(err)
	}
	tok, err := FromGGUF(f)
	if err != nil {
		t.Fatal(err)
	}
	var sb strings.Builder
	for _, id := range tok.Encode(string(text), EncodeOptions{}) {
		sb.WriteString(strconv.Itoa(int(id)))
		sb.WriteByte('\n')
	}
	os.WriteFile(os.Getenv("OUT"), []byte(sb.String()), 0o644)
	_ = binary.LittleEndian
	_ = filepath.Join
	_ = testdata.Dir
}

func TestCount(t *testing.T) {
	tok := openVocab(t, "/tmp/tok/vocabs/ggml-vocab-gpt-2.gguf")
	b, _ := os.ReadFile(testdata.Path(t, "prose/war_peace.txt"))
	t.Log(len(tok.Encode(string(b[:500000]), EncodeOptions{})), len(tok.Encode(string(b[:500*1024]), EncodeOptions{})))
}
