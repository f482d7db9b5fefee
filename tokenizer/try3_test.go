package tokenizer
import ("os";"testing";"strings")
func TestCount2(t *testing.T) {
	tok := openVocab(t, "/tmp/tok/vocabs/ggml-vocab-gpt-2.gguf")
	for _, f := range []string{"/tmp/tok/wp_ollama.txt", "/work/shared/data/prose/war_peace.txt"} {
	b, _ := os.ReadFile(f)
	s := string(b)
	r := []rune(s)
	t.Log(len(b), len(r), strings.Count(s, "\r"))
	for _, n := range []int{500000, 500*1024, 500*1000} {
		t.Log(n, len(tok.Encode(s[:n], EncodeOptions{})), len(tok.Encode(string(r[:n]), EncodeOptions{})), len(tok.Encode(strings.ReplaceAll(string(r[:n]),"\r",""), EncodeOptions{})))
	}
	}
}
