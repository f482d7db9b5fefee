package serve_test

import (
	"bytes"
	"encoding/base64"
	"encoding/binary"
	"fmt"
	"math"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/grovellm/grove"
	"github.com/grovellm/grove/gguf"
	"github.com/grovellm/grove/internal/model"
	"github.com/grovellm/grove/internal/model/synth"
	"github.com/grovellm/grove/internal/testing/cases"
	"github.com/grovellm/grove/serve"
	"github.com/grovellm/grove/tensor"
)

// Texts have the same embeddings as each has alone, as numbers and as base64, as text and as
// tokens, in both protocols. A truncated embedding has the direction of the whole.
func TestEmbeddings(t *testing.T) {
	m := tiny(t, "tiny-qwen3", 64)
	s := start(t, m, serve.Options{})
	cases.Check(t, 30, func(rt *rapid.T) {
		texts := rapid.SliceOfN(rapid.StringMatching(`[a-d ä]{1,9}`), 1, 3).Draw(rt, "texts")
		pooling := rapid.SampledFrom([]string{"mean", "last"}).Draw(rt, "pooling")
		width := rapid.SampledFrom([]int{0, 1, 5}).Draw(rt, "width")
		body := map[string]any{"model": "m", "input": texts, "pooling": pooling, "dimensions": width}
		together := s.post("/v1/embeddings", body)
		packed := s.post("/v1/embeddings", with(body, "encoding_format", "base64"))
		ollama := s.post("/api/embed", body)
		var lists [][]int32
		count := 0
		for i, text := range texts {
			tokens, err := m.Tokenize(text)
			if err != nil {
				rt.Fatal(err)
			}
			lists, count = append(lists, tokens), count+len(tokens)
			vector := together["data"].([]any)[i].(map[string]any)["embedding"].([]any)
			alone := at(s.post("/v1/embeddings", with(body, "input", text)), "data.0.embedding")
			data, err := base64.StdEncoding.DecodeString(packed["data"].([]any)[i].(map[string]any)["embedding"].(string))
			if err != nil || len(data) != 4*len(vector) || !reflect.DeepEqual(alone, any(vector)) ||
				!reflect.DeepEqual(ollama["embeddings"].([]any)[i], any(vector)) {
				rt.Fatalf("text %d: %v together, %v alone, %v: %v", i, vector, alone, ollama["embeddings"], err)
			}
			whole := at(s.post("/v1/embeddings", with(body, "input", text, "dimensions", nil)),
				"data.0.embedding").([]any)
			dot, square := 0.0, 0.0
			for j, x := range vector {
				if got := math.Float32frombits(binary.LittleEndian.Uint32(data[4*j:])); float64(got) != float64(float32(x.(float64))) {
					rt.Fatalf("number %d is %v, in base64 %v", j, x, got)
				}
				dot += x.(float64) * whole[j].(float64)
				square += whole[j].(float64) * whole[j].(float64)
			}
			if want := max(width, 0); want > 0 && len(vector) != want || math.Abs(dot-math.Sqrt(square)) > 1e-5 {
				rt.Fatalf("%d numbers; the cosine with the whole is %v", len(vector), dot/math.Sqrt(square))
			}
		}
		tokens := s.post("/v1/embeddings", with(body, "input", lists))
		if !reflect.DeepEqual(tokens, together) || at(together, "usage.prompt_tokens") != float64(count) ||
			ollama["prompt_eval_count"] != float64(count) {
			rt.Fatalf("of tokens %v, of texts %v", tokens, together)
		}
	})
	long := strings.Repeat("a b c d ", 100)
	for body, param := range map[string]string{
		`{}`: "input", `{"input":7}`: "input", `{"input":""}`: "input", `{"input":[-1]}`: "input",
		`{"input":"` + long + `"}`:      "input",
		`{"input":"x","dimensions":-1}`: "dimensions", `{"input":"x","dimensions":100000}`: "dimensions",
		`{"input":"x","encoding_format":"int8"}`: "encoding_format", `{"input":"x","pooling":"max"}`: "pooling",
		`{"input":"x","truncate_prompt_tokens":1}`: "truncate_prompt_tokens", `{"input":"x","normalize":false}`: "normalize",
		`{"input":"x","use_activation":false}`: "use_activation", `{"input":"x","embd_normalize":-1}`: "embd_normalize",
		`{"input":"x","add_special_tokens":false}`:                              "add_special_tokens",
		`{"input":"` + long + `","truncate_prompt_tokens":-1,"normalize":true}`: "input",
	} {
		if status, _, text := s.send("POST", "/v1/embeddings", body); status != 400 ||
			at(object(t, text), "error.param") != param {
			t.Errorf("%.60s: status %d: %s", body, status, text)
		}
	}
	// Ollama cuts a long text, unless it is told not to.
	if a := s.post("/api/embed", map[string]any{"input": long}); a["prompt_eval_count"] != 64.0 {
		t.Errorf("a long text: %v tokens", a["prompt_eval_count"])
	}
	if status, _, text := s.send("POST", "/api/embed", `{"truncate":false,"input":"`+long+`"}`); status != 400 {
		t.Errorf("a long text that must not be cut: status %d: %s", status, text)
	}
	old := s.post("/api/embeddings", map[string]any{"prompt": "abc"})
	if now := at(s.post("/api/embed", map[string]any{"input": "abc"}),
		"embeddings.0"); !reflect.DeepEqual(old["embedding"], now) {
		t.Errorf("/api/embeddings gives %v, /api/embed %v", old["embedding"], now)
	}
	alone := start(t, tiny(t, "tiny-qwen3", 64), serve.Options{})
	count := at(alone.post("/v1/embeddings", map[string]any{"input": []string{"abc", "de"}}), "usage.prompt_tokens")
	counted := fmt.Sprintf("grove_prompt_tokens_total{model=\"test/model\"} %v\n", count)
	if _, _, metrics := alone.send("GET", "/metrics", ""); !strings.Contains(metrics, counted) {
		t.Errorf("the %v tokens of embeddings are not in the metrics", count)
	}
}

// A model whose file says so gives the last token's state if a request leaves it open.
func TestPoolingOfTheFile(t *testing.T) {
	shape, err := synth.Lookup("tiny-qwen3")
	if err != nil {
		t.Fatal(err)
	}
	open, last := start(t, tiny(t, "tiny-qwen3", shape.Context), serve.Options{}), shape
	last.Tune = func(c *model.Config) { c.PoolLast = true }
	path := filepath.Join(t.TempDir(), "last.gguf")
	if err := synth.Write(ctx, path, last, synth.Options{Type: tensor.Q8_0, Seed: 3}); err != nil {
		t.Fatal(err)
	}
	m, err := grove.Open(path, grove.Options{Threads: 1})
	if err != nil {
		t.Fatal(err)
	}
	defer m.Close()
	s := start(t, m, serve.Options{})
	body := map[string]any{"input": "a few words"}
	want := at(open.post("/v1/embeddings", with(body, "pooling", "last")), "data.0.embedding")
	for _, b := range []map[string]any{body, with(body, "pooling", "last")} {
		if got := at(s.post("/v1/embeddings", b), "data.0.embedding"); !reflect.DeepEqual(got, want) {
			t.Errorf("%v: %v, want %v", b, got, want)
		}
	}
	if got := at(s.post("/api/embed", body), "embeddings.0"); !reflect.DeepEqual(got, want) {
		t.Errorf("/api/embed: %v, want %v", got, want)
	}
	if status, _, text := s.send("POST", "/v1/embeddings", `{"input":"x","pooling":"mean"}`); status != 400 {
		t.Errorf("the mean: status %d: %s", status, text)
	}
}

// A text that is cut to the context keeps the token that ends every text.
func TestEmbedCutText(t *testing.T) {
	shape, err := synth.Lookup("tiny-qwen3")
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "m.gguf")
	if err := synth.Write(ctx, path, shape, synth.Options{Type: tensor.Q8_0, Seed: 3}); err != nil {
		t.Fatal(err)
	}
	f, err := gguf.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	w := new(gguf.Writer)
	for key, v := range f.Meta() {
		w.Set(key, v)
	}
	w.Set("tokenizer.ggml.add_eos_token", true)
	for _, info := range f.Tensors {
		x, _ := f.Tensor(info.Name)
		w.AddTensor(x)
	}
	var b bytes.Buffer
	if _, err := w.WriteTo(&b); err != nil {
		t.Fatal(err)
	}
	m, err := grove.OpenGGUF("m", b.Bytes(), grove.Options{Threads: 1, Context: 20})
	if err != nil {
		t.Fatal(err)
	}
	defer m.Close()
	s := start(t, m, serve.Options{})
	long := strings.Repeat("many words ", 40)
	tokens, err := m.Tokenize(long)
	if err != nil || !m.Tokenizer().IsSpecial(tokens[len(tokens)-1]) {
		t.Fatal(tokens, err)
	}
	cut := append(tokens[:19:19], tokens[len(tokens)-1])
	want := at(s.post("/v1/embeddings", map[string]any{"input": cut}), "data.0.embedding")
	if got := at(s.post("/api/embed", map[string]any{"input": long}), "embeddings.0"); !reflect.DeepEqual(got, want) {
		t.Errorf("a long text: %v, want that of %v", got, cut)
	}
}

// The text for a gap equals the answer to the prompt of tokens that marks the gap, under
// the names of all protocols.
func TestInfill(t *testing.T) {
	s := start(t, nil, serve.Options{})
	m, _ := embedded()
	mark := func(name string) int32 {
		id, ok := m.Tokenizer().Find(name)
		if !ok {
			t.Fatalf("the embedded model has no token %s", name)
		}
		return id
	}
	of := func(text string) []any {
		return s.post("/tokenize", map[string]any{"content": text, "parse_special": false})["tokens"].([]any)
	}
	prompt := func(extra, prefix, suffix, begun string) (list []any) {
		if m.Tokenizer().AddBOS() {
			list = append(list, m.Tokenizer().BOS())
		}
		list = append(append(append(list, of(extra)...), mark("<|fim_prefix|>")), of(prefix)...)
		list = append(append(list, mark("<|fim_suffix|>")), of(suffix)...)
		return append(append(list, mark("<|fim_middle|>")), of(begun)...)
	}
	cases.Check(t, 20, func(rt *rapid.T) {
		text := rapid.StringMatching(`[a-z(){} <|>_\n]{1,12}`)
		prefix, suffix := text.Draw(rt, "prefix")+"<|fim_middle|>", text.Draw(rt, "suffix")
		more := map[string]any{"temperature": 0, "max_tokens": 5, "ignore_eos": true}
		want := at(s.post("/v1/completions", with(more, "prompt", prompt("", prefix, suffix, ""))), "choices.0.text")
		body := with(more, "input_prefix", prefix, "input_suffix", suffix, "n_predict", 5)
		delete(body, "max_tokens")
		a := s.post("/infill", body)
		streamed := ""
		data := jsonOf(with(body, "stream", true))
		_, _, events := s.send("POST", "/infill", data)
		for e := range strings.SplitSeq(strings.TrimSpace(events), "\n\n") {
			streamed += object(t, strings.TrimPrefix(e, "data: "))["content"].(string)
		}
		b := s.post("/v1/completions", with(more, "prompt", prefix, "suffix", suffix))
		c := s.post("/api/generate", map[string]any{"prompt": prefix, "suffix": suffix, "stream": false,
			"options": map[string]any{
				"temperature": 0, "num_predict": 5, "ignore_eos": true}})
		if a["content"] != want || streamed != want || at(b, "choices.0.text") != want || c["response"] != want ||
			a["stop_type"] != "limit" || a["tokens_predicted"] != 5.0 {
			rt.Fatalf("%v, streamed %q, %v, %v; want %q", a, streamed, b, c, want)
		}
		begun := s.post("/infill", with(body, "prompt", "x = ", "input_extra",
			[]any{map[string]any{"filename": "a.go", "text": "package a"}}))
		extra := at(s.post("/v1/completions", with(more, "prompt", prompt("package a\n\n", prefix, suffix, "x = "))),
			"choices.0.text")
		if begun["content"] != extra {
			rt.Fatalf("with a file and a beginning %v, want %q", begun, extra)
		}
	})
	none := start(t, tiny(t, "tiny-llama2", 64), serve.Options{})
	for path, body := range map[string]string{"/infill": `{"input_prefix":"a"}`,
		"/v1/completions": `{"prompt":"a","suffix":"b"}`} {
		if status, _, text := none.send("POST", path, body); status != 400 ||
			at(object(t, text), "error.code") != "no_infill" {
			t.Errorf("%s without the tokens: status %d: %s", path, status, text)
		}
	}
}
