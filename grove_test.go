package grove_test

import (
	"context"
	"errors"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"pgregory.net/rapid"

	"github.com/grovellm/grove"
	"github.com/grovellm/grove/internal/testdata"
	"github.com/grovellm/grove/model/synth"
	"github.com/grovellm/grove/tensor"
)

var ctx = context.Background()

// open opens a seeded random model of the named shape.
func open(t testing.TB, shape string, o grove.Options) *grove.Model {
	t.Helper()
	s, err := synth.Lookup(shape)
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), shape+".gguf")
	if err := synth.Write(ctx, path, s, synth.Options{Type: tensor.Q8_0, Seed: 3}); err != nil {
		t.Fatal(err)
	}
	m, err := grove.Open(path, o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { m.Close() })
	return m
}

func collect(t interface {
	Helper()
	Fatal(...any)
}, m *grove.Model, prompt string, r grove.Request) *grove.Result {
	t.Helper()
	got, err := grove.Collect(m.Generate(ctx, prompt, r))
	if err != nil {
		t.Fatal(err)
	}
	return got
}

// A stop string ends drafted text where it ends plain text, wherever it falls in an accepted block,
// and what comes before it is a beginning of the text without it.
func TestStopInAnAcceptedBlock(t *testing.T) {
	m := open(t, "tiny-llama2", grove.Options{Threads: 1})
	free := grove.Request{MaxTokens: 40, Sampling: grove.Sampling{Temperature: 1, Seed: 5}, IgnoreEnd: true}
	whole := collect(t, m, "a tale", free)
	rapid.Check(t, func(rt *rapid.T) {
		from := rapid.IntRange(0, len(whole.Text)-1).Draw(rt, "from")
		stop := whole.Text[from:min(len(whole.Text), from+rapid.IntRange(1, 6).Draw(rt, "length"))]
		r := free
		r.Stop = []string{strings.ToValidUTF8(stop, "?"), "never in it"}
		plain := collect(rt, m, "a tale", r)
		r.Drafter, r.Predict, r.Budget = "lookup", whole.Text, rapid.IntRange(2, 40).Draw(rt, "budget")
		drafted := collect(rt, m, "a tale", r)
		if plain.Text != drafted.Text || !slices.Equal(plain.Tokens, drafted.Tokens) || plain.Finish != drafted.Finish || plain.Stop != drafted.Stop {
			rt.Fatalf("stop %q: plain %q (%d tokens, %s), drafted %q (%d tokens, %s)", r.Stop[0],
				plain.Text, len(plain.Tokens), plain.Finish, drafted.Text, len(drafted.Tokens), drafted.Finish)
		}
		if !strings.HasPrefix(whole.Text, plain.Text) || strings.Contains(plain.Text, r.Stop[0]) {
			rt.Fatalf("stop %q: text %q of %q", r.Stop[0], plain.Text, whole.Text)
		}
	})
}

// The chunks' texts and tokens are the result's, cut into pieces.
func TestChunksAddUp(t *testing.T) {
	m := open(t, "tiny-qwen3", grove.Options{Threads: 2})
	r := grove.Request{MaxTokens: 50, Drafter: "lookup", Budget: 8, Stop: []string{"zz"}, Sampling: grove.Sampling{Temperature: 0.7, Seed: 2}}
	var text strings.Builder
	var tokens []int32
	var result *grove.Result
	for c, err := range m.Generate(ctx, "x y x y x y", r) {
		if err != nil {
			t.Fatal(err)
		}
		if c.Drafted < 0 || c.Drafted > len(c.Tokens) || result != nil {
			t.Errorf("chunk %+v", c)
		}
		text.WriteString(c.Text)
		tokens = append(tokens, c.Tokens...)
		result = c.Result
	}
	if result == nil || result.Text != text.String() || !slices.Equal(result.Tokens, tokens) || result.Stats.Tokens != len(tokens) {
		t.Errorf("chunks gave %q, %v; the result is %+v", text.String(), tokens, result)
	}
}

// A session's text is that of generations on their own, whatever went before: other prompts, rounds
// that were abandoned, contexts that ended.
func TestSessionIsAsIfAlone(t *testing.T) {
	m := open(t, "tiny-gptneox", grove.Options{Threads: 2})
	rapid.Check(t, func(rt *rapid.T) {
		s := m.NewSession()
		defer s.Close()
		prompt := "one"
		for range rapid.IntRange(1, 5).Draw(rt, "turns") {
			prompt = strings.ToValidUTF8(prompt[:rapid.IntRange(1, len(prompt)).Draw(rt, "keep")], "") + rapid.StringMatching(`[a-d ]{0,12}`).Draw(rt, "add")
			r := grove.Request{
				MaxTokens: 12,
				Drafter:   rapid.SampledFrom([]string{"none", "lookup", "lookup:min=2"}).Draw(rt, "drafter"),
				Sampling:  grove.Sampling{Temperature: 1, Seed: 4, FrequencyPenalty: 0.5},
				IgnoreEnd: true,
			}
			switch rapid.IntRange(0, 3).Draw(rt, "how") {
			case 0: // leave after a few chunks
				left := rapid.IntRange(1, 4).Draw(rt, "chunks")
				for _, err := range s.Generate(ctx, prompt, r) {
					if left--; err != nil || left == 0 {
						break
					}
				}
			case 1: // the context ends on the way
				stop, cancel := context.WithCancel(ctx)
				for _, err := range s.Generate(stop, prompt, r) {
					cancel()
					if err != nil && !errors.Is(err, context.Canceled) {
						rt.Fatal(err)
					}
				}
				cancel()
			default:
				got, err := grove.Collect(s.Generate(ctx, prompt, r))
				if err != nil {
					rt.Fatal(err)
				}
				if want := collect(rt, m, prompt, r); got.Text != want.Text || !slices.Equal(got.Tokens, want.Tokens) {
					rt.Fatalf("after %q: %q in the session, %q alone", prompt, got.Text, want.Text)
				}
				prompt += got.Text
			}
		}
	})
}

// A conversation in a session is answered as one that comes whole, and what was read before is not read again.
func TestChat(t *testing.T) {
	m := open(t, "tiny-llama3", grove.Options{})
	s := m.NewSession()
	defer s.Close()
	var talk []grove.Message
	for i, text := range []string{"good morning", "and now?", "<|eot_id|> goodbye"} {
		talk = append(talk, grove.Message{Role: "user", Content: text})
		r := grove.Request{MaxTokens: 10, Drafter: "lookup"}
		got, err := grove.Collect(s.Chat(ctx, talk, r))
		if err != nil {
			t.Fatal(err)
		}
		want, err := grove.Collect(m.Chat(ctx, talk, r))
		if err != nil {
			t.Fatal(err)
		}
		if got.Text != want.Text || want.Stats.Reused != 0 || (got.Stats.Reused > 0) != (i > 0) {
			t.Errorf("turn %d: %q with %d tokens reused, want %q", i, got.Text, got.Stats.Reused, want.Text)
		}
		talk = append(talk, grove.Message{Role: "assistant", Content: got.Text})
	}
	for _, bad := range [][]grove.Message{nil, {{Content: "no role"}}, {{Role: "user", Content: "\xff"}}} {
		var option *grove.OptionError
		if _, err := grove.Collect(m.Chat(ctx, bad, grove.Request{})); !errors.As(err, &option) || !strings.HasPrefix(option.Field, "Messages") {
			t.Errorf("%+v: %v, want an OptionError of Messages", bad, err)
		}
	}
}

// Goroutines that generate with one model get what they would get alone.
func TestConcurrentGenerations(t *testing.T) {
	m := open(t, "tiny-qwen2", grove.Options{Threads: 2})
	request := func(i int) grove.Request {
		return grove.Request{MaxTokens: 20, Drafter: []string{"", "lookup"}[i%2], Sampling: grove.Sampling{Temperature: 1, Seed: uint64(i)}}
	}
	var want []string
	for i := range 6 {
		want = append(want, collect(t, m, "go go go", request(i)).Text)
	}
	var wg sync.WaitGroup
	for i, want := range want {
		wg.Go(func() {
			got, err := grove.Collect(m.Generate(ctx, "go go go", request(i)))
			if err != nil || got.Text != want {
				t.Errorf("generation %d: %v, %v; want %q", i, got, err, want)
			}
		})
	}
	wg.Wait()
}

// A context that ends stops the work, with its error.
func TestCancel(t *testing.T) {
	m := open(t, "tiny-qwen3", grove.Options{})
	stop, cancel := context.WithCancel(ctx)
	defer cancel()
	n := 0
	var last error
	for _, err := range m.Generate(stop, "a", grove.Request{IgnoreEnd: true}) {
		if n++; n == 3 {
			cancel()
		}
		last = err
	}
	if !errors.Is(last, context.Canceled) || n != 4 {
		t.Errorf("%d chunks, %v", n, last)
	}
	if _, err := grove.Collect(m.Generate(stop, "a", grove.Request{})); !errors.Is(err, context.Canceled) {
		t.Errorf("with a context that had ended: %v", err)
	}
}

// A session takes one generation at a time.
func TestBusySession(t *testing.T) {
	m := open(t, "tiny-qwen3", grove.Options{Threads: 1})
	s := m.NewSession()
	defer s.Close()
	for _, err := range s.Generate(ctx, "a", grove.Request{MaxTokens: 3}) {
		if err != nil {
			t.Fatal(err)
		}
		if _, err := grove.Collect(s.Generate(ctx, "b", grove.Request{})); err == nil || !strings.Contains(err.Error(), "generating already") {
			t.Errorf("a second generation in the session: %v", err)
		}
		break
	}
	if _, err := grove.Collect(s.Generate(ctx, "b", grove.Request{MaxTokens: 1})); err != nil {
		t.Errorf("after the first was left: %v", err)
	}
}

// What cannot be served is refused, naming the field and what to do.
func TestBadRequests(t *testing.T) {
	m := open(t, "tiny-qwen3", grove.Options{Threads: 1, Context: 64})
	long := strings.Repeat("word ", 200)
	for _, c := range []struct {
		name, prompt string
		r            grove.Request
		want         []string
	}{
		{"invalid UTF-8", "fine\nbad \xff\xfe", grove.Request{}, []string{"Prompt", "byte 9", "line 2", "UTF-8"}},
		{"empty prompt", "", grove.Request{}, []string{"Prompt", "no tokens"}},
		{"long prompt", long, grove.Request{}, []string{"64", "context", "shorten"}},
		{"negative length", "a", grove.Request{MaxTokens: -1}, []string{"MaxTokens", "-1"}},
		{"budget", "a", grove.Request{Budget: 1}, []string{"Budget", "2 to"}},
		{"empty stop", "a", grove.Request{Stop: []string{""}}, []string{"Stop", "empty"}},
		{"binary stop", "a", grove.Request{Stop: []string{"\x80"}}, []string{"Stop", "UTF-8"}},
		{"temperature", "a", grove.Request{Sampling: grove.Sampling{Temperature: -1}}, []string{"Temperature", "-1"}},
		{"top-p", "a", grove.Request{Sampling: grove.Sampling{TopP: 1.5}}, []string{"TopP", "1.5"}},
		{"bias", "a", grove.Request{Sampling: grove.Sampling{LogitBias: map[int32]float32{1 << 20: 1}}}, []string{"LogitBias", "1048576"}},
		{"drafter", "a", grove.Request{Drafter: "oracle"}, []string{"Drafter", "oracle", "lookup", "none"}},
		{"drafter option", "a", grove.Request{Drafter: "lookup:mn=3"}, []string{"Drafter", "mn", "min"}},
		{"accept", "a", grove.Request{Accept: "greedily"}, []string{"Accept", "greedily", "coupled or rejection"}},
		{"no draft model", "a", grove.Request{Drafter: "best-first"}, []string{"Drafter", "best-first", "draft model"}},
		{"draft model", "a", grove.Request{Drafter: "linear:model=none.gguf"}, []string{"Drafter", "none.gguf"}},
		{"predicted text", "a", grove.Request{Predict: "\xc3"}, []string{"Predict", "UTF-8"}},
		{"predicted tokens", "a", grove.Request{PredictTokens: []int32{-1}}, []string{"PredictTokens", "-1"}},
		{"both predictions", "a", grove.Request{Predict: "b", PredictTokens: []int32{1}}, []string{"Predict", "one of them"}},
	} {
		_, err := grove.Collect(m.Generate(ctx, c.prompt, c.r))
		checkError(t, c.name, err, c.want)
	}
	_, err := grove.Collect(m.GenerateTokens(ctx, []int32{5, 1 << 30}, grove.Request{}))
	checkError(t, "token", err, []string{"Prompt", "token 1"})
	var tooLong *grove.ContextError
	if _, err := grove.Collect(m.Generate(ctx, long, grove.Request{})); !errors.As(err, &tooLong) || tooLong.Limit != 64 {
		t.Errorf("a long prompt: %v, want a ContextError", err)
	}
}

func checkError(t *testing.T, name string, err error, want []string) {
	t.Helper()
	if err == nil {
		t.Errorf("%s: no error", name)
		return
	}
	for _, w := range want {
		if !strings.Contains(err.Error(), w) {
			t.Errorf("%s: %q does not say %q", name, err, w)
		}
	}
}

// Files that are no models are refused, naming the file.
func TestOpenRefuses(t *testing.T) {
	dir := t.TempDir()
	s, err := synth.Lookup("tiny-llama3")
	if err != nil {
		t.Fatal(err)
	}
	good := filepath.Join(dir, "good.gguf")
	if err := synth.Write(ctx, good, s, synth.Options{Seed: 1}); err != nil {
		t.Fatal(err)
	}
	data, err := os.ReadFile(good)
	if err != nil {
		t.Fatal(err)
	}
	write := func(name string, data []byte) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, data, 0o644); err != nil {
			t.Fatal(err)
		}
		return path
	}
	if err := os.Mkdir(filepath.Join(dir, "empty"), 0o755); err != nil {
		t.Fatal(err)
	}
	rng := rand.New(rand.NewPCG(1, 1))
	for name, path := range map[string]string{
		"missing":   filepath.Join(dir, "missing.gguf"),
		"folder":    filepath.Join(dir, "empty"),
		"text":      write("text.gguf", []byte("hello")),
		"empty":     write("empty.gguf", nil),
		"truncated": write("truncated.gguf", data[:len(data)/2]),
		"beheaded":  write("beheaded.gguf", data[:100]),
		"renamed":   write("renamed.gguf", []byte(strings.Replace(string(data[:2000]), "llama", "lamas", 1)+string(data[2000:]))),
		"noise":     write("noise.gguf", append([]byte("GGUF\x03\x00\x00\x00"), randomBytes(rng, 5000)...)),
	} {
		if m, err := grove.Open(path, grove.Options{}); err == nil {
			m.Close()
			t.Errorf("%s: opened", name)
		} else if !strings.Contains(err.Error(), filepath.Base(path)) {
			t.Errorf("%s: %q does not name the file", name, err)
		}
	}
	for _, o := range []grove.Options{{Threads: -1}, {Threads: 1 << 20}, {Context: -5}} {
		var option *grove.OptionError
		if _, err := grove.Open(good, o); !errors.As(err, &option) {
			t.Errorf("%+v: %v, want an OptionError", o, err)
		}
	}
}

func randomBytes(rng *rand.Rand, n int) []byte {
	b := make([]byte, n)
	for i := range b {
		b[i] = byte(rng.Uint32())
	}
	return b
}

// A real model writes what it wrote for PyTorch: the same from the folder and from the file (package model has the
// golden logits), drafted and plain.
func TestRealModel(t *testing.T) {
	dir := testdata.Path(t, "models/go-7m")
	var texts []string
	for _, path := range []string{dir, filepath.Join(dir, "go-7m-f32.gguf")} {
		m, err := grove.Open(path, grove.Options{})
		if err != nil {
			t.Fatal(err)
		}
		defer m.Close()
		for _, drafter := range []string{"none", "lookup"} {
			texts = append(texts, collect(t, m, "func main() {\n", grove.Request{MaxTokens: 32, Drafter: drafter}).Text)
		}
	}
	for _, text := range texts[1:] {
		if text != texts[0] {
			t.Errorf("texts differ: %q", texts)
		}
	}
}
